"""Any receiver of OTLP/HTTP, OpenTelemetry's protocol: its collector, and many vendors.

Bodies are binary protobuf, which each receiver accepts; JSON is refused by several of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.errors.exceptions import sanitize, sanitize_body
from tap_audit_events.outputs.receivers.connection import Connection
from tap_audit_events.outputs.receivers.otlp_records import export_request, log_records
from tap_audit_events.outputs.receivers.protobuf import read_message
from tap_audit_events.outputs.receivers.receiver import Item, Outcome, Receiver
from tap_audit_events.outputs.receivers.responses import (
    Concerns,
    Received,
    ReceiverError,
    check_status,
)

DEFAULT_PATH: Final = "/v1/logs"
CONTENT_TYPE: Final = "application/x-protobuf"

_PARTIAL_SUCCESS: Final = 1
_REJECTED, _MESSAGE = 1, 2
_MAX_INT64: Final = (1 << 63) - 1  # a larger number is a negative one

_logger: Final = logging.getLogger("tap_audit_events")


class _Partial(msgspec.Struct, rename="camel"):
    """What a receiver says about a batch: how many events it refuses, and why."""

    rejected_log_records: Annotated[int, msgspec.Meta(ge=0)] = 0
    error_message: str = ""


class _Response(msgspec.Struct, rename="camel"):
    partial_success: _Partial | None = None


class Otlp(Receiver):
    """Sends each batch as one request with a log record for each event."""

    def __init__(self, connection: Connection) -> None:
        parts = urlsplit(connection.url)
        path = parts.path if parts.path.strip("/") else DEFAULT_PATH
        self._connection = connection.at(parts._replace(path=path).geturl())
        self._warned = ""

    def bodies(self, page: EventPage, texts: Sequence[bytes], /) -> Sequence[bytes]:
        return log_records(page, texts, observed=time.time_ns())

    def send(self, batch: Sequence[Item]) -> Outcome:
        body = export_request(item.body for item in batch)
        response = self._connection.post("", body, {"Content-Type": CONTENT_TYPE})
        check_status(self._connection.name, response)
        partial = self._partial(response)
        rejected, message = partial.rejected_log_records, sanitize(partial.error_message)
        if not rejected:
            self._warn(message if partial.error_message else "")
            return Outcome()
        if rejected >= len(batch):
            return Outcome(refused=dict.fromkeys(range(len(batch)), f"refused it: {message}"))
        # It does not say which: they are found as the events are that make it refuse a batch.
        raise ReceiverError(
            f"{self._connection.name} refused {rejected:,} of {len(batch):,} events: {message}",
            Concerns.CONTENT,
        )

    def wait(self) -> None:
        """Nothing: the response was the acknowledgement."""

    def _partial(self, response: Received) -> _Partial:
        """What a response says; nothing if it has no body of a known type."""
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        try:
            if kind == CONTENT_TYPE:
                return _of_protobuf(response.body)
            if kind == "application/json" and response.body:
                decoded = msgspec.json.decode(response.body, type=_Response, strict=False)
                return decoded.partial_success or _Partial()
        except (ValueError, msgspec.DecodeError, RecursionError):
            raise ReceiverError(
                f"{self._connection.name}: status {response.status}, but not in the form of OTLP:"
                f" {sanitize_body(response.body)}",
                Concerns.EVERYTHING,
            ) from None
        return _Partial()

    def _warn(self, message: str) -> None:
        if message and message != self._warned:
            _logger.warning(
                "%s accepted the events with a message: %s", self._connection.name, message
            )
        self._warned = message


def _of_protobuf(body: bytes) -> _Partial:
    partial = read_message(body).get(_PARTIAL_SUCCESS, b"")
    if not isinstance(partial, bytes):
        raise ValueError("partial_success is not a message")
    fields = read_message(partial)
    rejected, message = fields.get(_REJECTED, 0), fields.get(_MESSAGE, b"")
    if not isinstance(rejected, int) or rejected > _MAX_INT64 or not isinstance(message, bytes):
        raise ValueError("partial_success has other types, or a negative number")
    return _Partial(rejected, message.decode(errors="replace"))
