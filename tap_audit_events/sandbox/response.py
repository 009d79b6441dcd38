"""The service's responses: pages, errors, and how they are sent."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Headers: TypeAlias = tuple[tuple[str, str], ...]

JSON: Final[Headers] = (("content-type", "application/json"),)


@dataclass(frozen=True)
class Response:
    """A response, and how it is sent.

    Attributes:
        wait_seconds: It is sent after that time.
        cut_after: The connection is closed after that many bytes of the body, although
            Content-Length counts all of them.
        reset: Nothing is sent: the connection is reset. The status is 0.
    """

    status: int
    headers: Headers = JSON
    body: bytes = b""
    wait_seconds: float = 0.0
    cut_after: int | None = None
    reset: bool = False


class RefusedError(Exception):
    """The request is refused with an error response.

    `violation` says whether the interface forbids the request. If not, a correct
    client may be refused too.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        variables: Mapping[str, Any] | None = None,
        *,
        headers: Headers = (),
        violation: bool = False,
    ) -> None:
        """Keep the response that is sent to the client."""
        super().__init__(message)
        self.response = error_response(status, code, message, variables, headers)
        self.violation = violation


def page_response(events: Iterable[bytes], cursor: Mapping[str, str | None]) -> Response:
    """The envelope of interface.md 2.7 around events in JSON; `cursor` is its other field."""
    end = b"]}"
    if cursor:
        end = b"]," + json.dumps(cursor, separators=(",", ":")).encode().removeprefix(b"{")
    # The envelope is added to the outer events, so that a page is copied only once.
    parts = list(events) or [b""]
    parts[0] = b'{"auditEvents":[' + parts[0]
    parts[-1] += end
    return Response(200, body=b",".join(parts))


def error_response(
    status: int, code: str, message: str, variables: Mapping[str, Any] | None, headers: Headers
) -> Response:
    """An error in the shape of interface.md 7."""
    body = {"errCode": code, "msg": message, "vars": variables}
    return Response(status, (*JSON, *headers), json.dumps(body).encode())


def invalid(message: str, **variables: Any) -> RefusedError:
    """The 400 for a request that the interface forbids."""
    return RefusedError(400, "invalidRequest", message, variables or None, violation=True)
