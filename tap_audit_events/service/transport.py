"""What all requests have in common: a session for each thread, proxies, certificates."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from ssl import SSLEOFError
from typing import Any, TypeAlias

from requests import PreparedRequest, Response, Session, exceptions
from urllib3.exceptions import MaxRetryError, ProtocolError, ProxyError, SSLError

from tap_audit_events.service.connection import OpenSockets
from tap_audit_events.service.proxies import check_proxy

NewSession: TypeAlias = Callable[[OpenSockets], Session]


class _Connection(threading.local):
    """What each thread has for itself: a session, and whether its last request got a response.

    `sessions` keeps each session, so that no thread frees one while Python exits: that is not safe.
    """

    def __init__(
        self, new_session: NewSession, open_sockets: OpenSockets, sessions: list[Session]
    ) -> None:
        self.session = new_session(open_sockets)
        self.is_used = False
        sessions.append(self.session)


class Transport:
    """Sends requests to one service; safe to use from several threads.

    `RefusedError` if the environment names a proxy that cannot be used.
    """

    def __init__(self, base_url: str, new_session: NewSession) -> None:
        self._url = f"{base_url}/v1/organizations"
        self._open_sockets = OpenSockets()
        self._connection = _Connection(new_session, self._open_sockets, sessions=[])
        # Proxies and certificate bundles, read from the environment once.
        self._options: dict[str, Any] = dict(
            self.session.merge_environment_settings(self._url, {}, True, None, None)
        )
        if base_url.startswith("http://"):  # only to loopback: no proxy may see the token
            self._options["proxies"] = {}
        check_proxy(self._url, self._options["proxies"], os.environ)

    def close(self) -> None:
        """End every request that waits for its response."""
        self._open_sockets.abort()

    @property
    def session(self) -> Session:
        """This thread's session."""
        return self._connection.session

    def send(self, request: PreparedRequest, *, timeout_seconds: float) -> Response:
        """Send a request to the service; the body of the response is not read yet.

        A connection that the service closed while it was idle is replaced immediately, once: that
        is not a failure and not counted as a retry. The timeout limits the wait for a connection,
        and for each further part of the response.
        """
        connection = self._connection
        was_used, connection.is_used = connection.is_used, False
        try:
            response = self._send_once(request, timeout_seconds)
        except exceptions.ConnectionError as error:
            if not was_used or not _was_closed(error):
                raise
            response = self._send_once(request, timeout_seconds)
        connection.is_used = True
        return response

    def _send_once(self, request: PreparedRequest, timeout_seconds: float) -> Response:
        """Send without `Session.send`, which follows redirects, keeps cookies and costs time."""
        if self._open_sockets.is_aborted:
            raise exceptions.ConnectionError("the run is over")
        adapter = self.session.get_adapter(self._url)
        return adapter.send(request, timeout=(timeout_seconds, timeout_seconds), **self._options)


def _was_closed(error: exceptions.ConnectionError) -> bool:
    """Whether an open connection broke; False if no connection was made."""
    causes = map(_unwrapped, error.args)
    broken = ProtocolError | ConnectionError | SSLEOFError
    return any(isinstance(cause, broken) for cause in causes)


def _unwrapped(error: object) -> object:
    """What urllib3 wrapped: it blames the proxy if a connection through one breaks."""
    reason = error.reason if isinstance(error, MaxRetryError) else error
    cause = reason.original_error if isinstance(reason, ProxyError) else reason
    return cause.args[0] if isinstance(cause, SSLError) else cause
