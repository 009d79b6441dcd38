"""What the service answers: pages, errors, and what the transport does to them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

JSON = (("content-type", "application/json"),)


@dataclass(frozen=True)
class Answer:
    """One answer, and how it goes over the wire.

    It is sent after `wait_seconds`. With `cut_after`, the connection ends after that many bytes
    of the body, while Content-Length tells of all. With `reset`, nothing is sent: the connection
    is reset, and `status` is 0.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = JSON
    body: bytes = b""
    wait_seconds: float = 0.0
    cut_after: int | None = None
    reset: bool = False


class RefusedError(Exception):
    """The request is answered with an error.

    `violation` tells that the interface forbids the request, rather than that the service
    may refuse it to a correct client.
    """

    def __init__(self, answer: Answer, message: str, violation: bool = False) -> None:
        """Keep the answer that goes to the client."""
        super().__init__(message)
        self.answer = answer
        self.violation = violation


def page_answer(events: Iterable[bytes], next_cursor: str | None, null_cursor: bool) -> Answer:
    """The envelope of interface.md 2.7 round events that are JSON already."""
    end = b"]}"
    if next_cursor is not None or null_cursor:
        end = b'],"nextCursor":' + json.dumps(next_cursor).encode() + b"}"
    # The envelope goes onto the outer events, so that a page is copied once and not thrice.
    parts = list(events) or [b""]
    parts[0] = b'{"auditEvents":[' + parts[0]
    parts[-1] += end
    return Answer(200, body=b",".join(parts))


def error_answer(
    status: int,
    code: str,
    message: str,
    variables: Mapping[str, Any] | None = None,
    *,
    headers: tuple[tuple[str, str], ...] = (),
) -> Answer:
    """An error in the shape of interface.md 7."""
    body = {"errCode": code, "msg": message, "vars": variables}
    return Answer(status, (*JSON, *headers), json.dumps(body).encode())


def refusal(
    status: int,
    code: str,
    message: str,
    variables: Mapping[str, Any] | None = None,
    *,
    headers: tuple[tuple[str, str], ...] = (),
    violation: bool = False,
) -> RefusedError:
    """The error of a status, to be raised."""
    answer = error_answer(status, code, message, variables, headers=headers)
    return RefusedError(answer, message, violation)


def invalid(message: str, **variables: Any) -> RefusedError:
    """The 400 for a request that the interface forbids."""
    return refusal(400, "invalidRequest", message, variables or None, violation=True)
