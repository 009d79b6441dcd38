"""What a receiver's response, or its absence, means for a batch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum, auto
from http import HTTPStatus
from typing import Final, NamedTuple

from requests import Response

from tap_audit_events.errors.exceptions import OutputError, RetryableError, sanitize, sanitize_body
from tap_audit_events.service.responses import network_error
from tap_audit_events.service.retries import http_date, retry_after_seconds

REFUSED: Final = "AE-RECEIVER-REFUSED"
UNAVAILABLE: Final = "AE-RECEIVER"
REFUSED_EVENT: Final = "AE-RECEIVER-EVENT"

_TEMPORARY: Final = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
_OF_THE_CONTENT: Final = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY}
)


class Concerns(Enum):
    """What an error is about."""

    MOMENT = auto()
    """The receiver is down, slow or limits: the same request may succeed later."""
    CONTENT = auto()
    """The receiver does not accept something in the batch: without it, the rest may succeed."""
    EVERYTHING = auto()
    """The receiver refuses the URL, the secret or the form of all requests."""


class ReceiverError(OutputError):
    """A receiver has not accepted a batch.

    Attributes:
        reason: what happened, on one line.
        concerns: what the error is about.
        retry_after_seconds: the shortest wait that the receiver requests, 0 if it requests none.
        position: of the event in the batch that it does not accept, None if it does not say.
    """

    def __init__(
        self,
        reason: str,
        concerns: Concerns,
        retry_after_seconds: float = 0.0,
        *,
        position: int | None = None,
    ) -> None:
        super().__init__(reason, UNAVAILABLE if concerns is Concerns.MOMENT else REFUSED)
        self.reason = reason
        self.concerns = concerns
        self.retry_after_seconds = retry_after_seconds
        self.position = position


class Received(NamedTuple):
    """A response: its status, its headers, and its body or the start of it."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def check_status(name: str, response: Received) -> None:
    """Raise the error of a response whose status is not 2xx.

    Args:
        name: what messages call the receiver.
        response: its response.
    """
    status = response.status
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return
    what = f"status {status}, {sanitize_body(response.body)}"
    if location := response.headers.get("Location"):
        what = f"status {status} to {sanitize(location)}, which is not followed"
    raise ReceiverError(f"{name}: {what}", concern_of(status), _wait_of(response))


def concern_of(status: int) -> Concerns:
    """What an error status is about."""
    if status in _TEMPORARY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Concerns.MOMENT
    return Concerns.CONTENT if status in _OF_THE_CONTENT else Concerns.EVERYTHING


def no_response(name: str, error: Exception) -> ReceiverError:
    """The error of a request without a complete response."""
    found = network_error(error)
    concerns = Concerns.MOMENT if isinstance(found, RetryableError) else Concerns.EVERYTHING
    reason = f"{name}: {found.details}"
    if found.code == "AE-CERTIFICATE":
        next_step = found.next_step.replace("base_url", "--to").removesuffix(".")
        reason = f"{reason}. {next_step}"
    return ReceiverError(reason, concerns)


def received(response: Response, body: bytes) -> Received:
    """A response of `requests`, and its body."""
    return Received(response.status_code, response.headers, body)


def _wait_of(response: Received) -> float:
    date = http_date(response.headers.get("Date")) or datetime.now(UTC)
    return retry_after_seconds(response.headers.get("Retry-After"), now=date) or 0.0
