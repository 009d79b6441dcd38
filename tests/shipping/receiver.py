"""A strict HTTP receiver on loopback, in the process of a test, that misbehaves on request.

It takes what is sent to any path, as JSON lines unless its protocol says otherwise:

    with Receiver() as receiver:
        receiver.faults += [Status(429, {"Retry-After": "1"}), Closes(after_taking=True)]
        receiver.refused_word = "poison"           # 400 for each request that contains it
        command("ship", "--to", receiver.url, "--state", "s.json")
    assert receiver.ids == ["e1", "e2", "e2"]      # in order of arrival, and what came twice
    assert receiver.without_repeats == ["e1", "e2"]  # by idempotency key

Each fault is for one request, in this order; None is none. Afterwards the receiver behaves.
`stop` and `start` take it down and bring it back on the same port. What a receiver must not be sent
is in `violations`; leaving the block fails if there are any.
"""

import gzip
import json
import socket
import threading
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, Self

KEY = "Idempotency-Key"
TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Status:
    """The request gets this status, and nothing is taken; `Status(301, {"Location": …})`."""

    code: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Closes:
    """The connection is closed without a response, before or after the batch was taken."""

    after_taking: bool = False


@dataclass(frozen=True)
class TakesHalf:
    """The first half of the events is taken; the response has this status."""

    code: int = 500


@dataclass(frozen=True)
class Slow:
    """The batch is taken, and the response follows so many seconds later."""

    seconds: float


Fault = Status | Closes | TakesHalf | Slow


@dataclass(frozen=True)
class Request:
    """What one request brought.

    Attributes:
        headers: with names in lower case.
        body: decompressed.
        size: of the body as it was sent, in bytes.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    size: int

    @property
    def key(self) -> str | None:
        return self.headers.get(KEY.lower())


class RefusedError(Exception):
    """A protocol refuses a request, which it is allowed to make."""

    def __init__(self, response: Status) -> None:
        super().__init__()
        self.response = response


class Body(Protocol):
    """How a protocol's requests carry events, and what an accepted one gets as its response."""

    def events(self, request: Request) -> list[Any]:
        """Return the events.

        Raises:
            ValueError: the protocol forbids such a request.
            RefusedError: the receiver does not accept this one.
        """

    def response(self, request: Request) -> Status:
        """Return the response to an accepted request."""


class JsonLines:
    """One event a line; each line ends with a line feed. Each batch has a key of its own."""

    def __init__(self) -> None:
        self.content_types: tuple[str, ...] = ("application/x-ndjson",)
        self._bodies: dict[str, bytes] = {}

    def events(self, request: Request) -> list[Any]:
        if request.headers.get("content-type", "").partition(";")[0] not in self.content_types:
            raise ValueError(f"content type {request.headers.get('content-type')}")
        if not request.key:
            raise ValueError(f"no {KEY}")
        if self._bodies.setdefault(request.key, request.body) != request.body:
            raise ValueError(f"another batch has the {KEY} {request.key}")
        if not request.body.endswith(b"\n"):
            raise ValueError("the last line has no end")
        return [json.loads(line) for line in request.body[:-1].split(b"\n")]

    def response(self, request: Request) -> Status:
        return Status(200)


class Receiver:
    """Receives batches while its `with` block runs.

    Attributes:
        requests: all that came, in order, also those that were refused.
        accepted: those whose events were taken, also if no response said so.
        events: the events that were taken, in order of arrival, and as often as they came.
        faults: what goes wrong with the next requests, one each.
        refused_word: a request that contains it gets `refused_status`.
        max_bytes: a longer body, decompressed, gets 413.
        authorization: any other Authorization header gets 401.
    """

    def __init__(self, protocol: Body | None = None) -> None:
        self.protocol: Body = protocol or JsonLines()
        self.requests: list[Request] = []
        self.accepted: list[Request] = []
        self.events: list[Any] = []
        self.violations: list[str] = []
        self.faults: list[Fault | None] = []
        self.refused_word: str | None = None
        self.refused_status = 400
        self.max_bytes: int | None = None
        self.authorization: str | None = None
        self.secrets: tuple[str, ...] = ()
        self.lock = threading.Condition()
        self.stopped = threading.Event()
        self._port = 0
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/ingest"

    @property
    def root(self) -> str:
        """The URL without a path."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def ids(self) -> list[str]:
        """The ids of the events, in order of arrival, and as often as they came."""
        return [event["id"] for event in self.events]

    @property
    def without_repeats(self) -> list[str]:
        """The ids that a receiver stores which drops a batch whose key it has seen."""
        first = {request.key: request for request in reversed(self.accepted)}
        batches = [each for each in self.accepted if first[each.key] is each]
        return [event["id"] for batch in batches for event in self.protocol.events(batch)]

    def start(self) -> None:
        self.stopped.clear()
        self._server = _Server(self, self._port)
        self._port = self._server.server_port
        self._server.start()

    def stop(self) -> None:
        """Close the port and all connections; what is in flight gets no response."""
        self.stopped.set()
        if self._server:
            self._server.stop()
            self._server = None

    def wait_for(self, requests: int) -> None:
        """Wait until so many requests have come."""
        self.wait_until(lambda: len(self.requests) >= requests)

    def wait_until(self, is_met: Callable[[], bool]) -> None:
        """Wait until a condition is met; it is checked with each request."""
        with self.lock:
            assert self.lock.wait_for(is_met, TIMEOUT_SECONDS)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        if exception == (None, None, None):
            assert self.violations == []

    def receive(self, request: Request) -> Status | None:  # noqa: PLR0911 - one for each case
        """Return the response to a request; None closes the connection."""
        with self.lock:
            self.requests.append(request)
            self.lock.notify_all()
            fault = self.faults.pop(0) if self.faults else None
            if isinstance(fault, Status):
                return fault
            if fault == Closes(after_taking=False):
                return None
            if refused := self._refused(request):
                return refused
            try:
                events = self.protocol.events(request)
            except RefusedError as error:
                return error.response
            except ValueError as error:
                self.violations.append(f"{request.method} {request.path}: {error}")
                return Status(400)
            if isinstance(fault, TakesHalf):
                self.events += events[: len(events) // 2]
                return Status(fault.code)
            self.accepted.append(request)
            self.events += events
            self.lock.notify_all()
            response = self.protocol.response(request)
        if isinstance(fault, Slow):
            self.stopped.wait(fault.seconds)
        return None if isinstance(fault, Closes) else response

    def _refused(self, request: Request) -> Status | None:
        if self.authorization and request.headers.get("authorization") != self.authorization:
            return Status(401)
        if self.max_bytes is not None and len(request.body) > self.max_bytes:
            return Status(413)
        if self.refused_word and self.refused_word.encode() in request.body:
            return Status(self.refused_status)
        return None

    def check(self, request: Request) -> None:
        """Note if the request contains one of the secrets that this receiver must not learn."""
        whole = f"{request.path} {dict(request.headers)}".encode() + request.body
        self.violations += [
            "a secret of another party" for secret in self.secrets if secret.encode() in whole
        ]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, receiver: Receiver, port: int) -> None:
        self.receiver = receiver
        self._sockets: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        for each in [*self._sockets]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._sockets.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no error of the receiver."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        receiver = self.server.receiver
        if (sent := self._body()) is None:
            self.close_connection = True
            return
        try:
            body = self._decompressed(sent)
        except (OSError, EOFError, zlib.error, ValueError) as error:
            receiver.violations.append(f"the body cannot be read: {error}")
            body = b""
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body, len(sent))
        receiver.check(request)
        response = receiver.receive(request)
        if response is None or receiver.stopped.is_set():
            self.close_connection = True
            return
        self._send(response)

    do_GET = do_POST  # noqa: N815 - the name that the base class looks for

    def _body(self) -> bytes | None:
        """Return the whole body as it was sent, or None if the client closed before its end."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            size = int(self.headers.get("Content-Length", "0"))
            body = self.rfile.read(size)
            return body if len(body) == size else None
        chunks: list[bytes] = []
        while line := self.rfile.readline():
            chunk = self.rfile.read(int(line, 16))
            self.rfile.readline()
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
        return None

    def _decompressed(self, body: bytes) -> bytes:
        match self.headers.get("Content-Encoding", "identity"):
            case "identity":
                return body
            case "gzip":
                return gzip.decompress(body)
            case other:
                raise ValueError(f"content encoding {other}")

    def _send(self, response: Status) -> None:
        self.send_response(response.code)
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, *_: Any) -> None:
        """Tests read the log of the program under test, not the receiver's."""
