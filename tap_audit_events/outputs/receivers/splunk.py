"""Splunk's HTTP Event Collector (HEC), with indexer acknowledgment if the token has it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

import msgspec

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.errors.exceptions import sanitize, sanitize_body
from tap_audit_events.events.instants import Instant, microseconds
from tap_audit_events.outputs.durable import unusable
from tap_audit_events.outputs.receivers.connection import GRACE_SECONDS, Connection
from tap_audit_events.outputs.receivers.receiver import Item, Outcome, Receiver
from tap_audit_events.outputs.receivers.responses import (
    Concerns,
    Received,
    ReceiverError,
    check_status,
)

ACK_SECONDS: Final = 300.0
"""Batches that are not acknowledged within this time are sent again."""

MAX_PENDING_BYTES: Final = 32_000_000
"""If batches of this size wait for their acknowledgment, no further one is sent meanwhile."""

COLLECTOR: Final = "/services/collector"
FIELDS: Final = ("index", "source", "sourcetype", "host")
DEFAULTS: Final = {"source": "audit-events", "sourcetype": "audit_events"}

_FIRST_POLL_SECONDS: Final = 0.1
_LAST_POLL_SECONDS: Final = 5.0
_EPOCH: Final = microseconds(Instant("1970-01-01T00:00:00"))

_ACCEPTED: Final = frozenset({0, 24, 25})
"""Codes of success, and of success although queues are almost full."""

_ACK_IS_DISABLED: Final = 14
_OF_AN_EVENT: Final = frozenset({6, 12, 13, 15})
"""Codes of invalid data, of an event that is missing or blank, and of invalid indexed fields."""


class Splunk(Receiver):
    """Sends each event in an envelope, with its time in seconds since 1970.

    The parameters of the URL's query become fields of the envelopes: see `FIELDS`.

    Args:
        connection: the connection to the collector.
        clock: a clock in seconds.

    Raises:
        SettingsError: the query has another parameter.
    """

    SCHEME = "Splunk"

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(connection.url)
        base = parts.path.rstrip("/").removesuffix("/event")
        self._connection = connection.at(parts._replace(path=base or COLLECTOR, query="").geturl())
        fields = msgspec.json.encode(fields_of(parts.query))[1:-1]
        self._fields = b"," + fields if fields else b""
        self._headers = {
            "Content-Type": "application/json",
            "X-Splunk-Request-Channel": str(uuid4()),
        }
        self._clock = clock
        self._pending: dict[int, Sequence[Item]] = {}
        self._overdue: deque[Sequence[Item]] = deque()

    def bodies(self, page: EventPage, texts: Sequence[bytes], /) -> Sequence[bytes]:
        fields = self._fields
        return [
            b'{"time":%b%b,"event":%b}' % (epoch_seconds(instant), fields, text)
            for text, instant in zip(texts, page.instants, strict=True)
        ]

    def send(self, batch: Sequence[Item]) -> Outcome:
        pending = sum(len(item.body) for each in self._pending.values() for item in each)
        if self._overdue or pending > MAX_PENDING_BYTES:
            self.wait()
        self._send(batch)
        return Outcome()

    def wait(self) -> None:
        try:
            self._wait()
            while self._overdue:
                self._send(self._overdue[0])
                self._overdue.popleft()
                self._wait()
        except ReceiverError as error:
            if error.concerns is Concerns.CONTENT:  # not of the batch that the caller would split
                raise ReceiverError(error.reason, Concerns.EVERYTHING) from None
            raise

    def _wait(self) -> None:
        """Wait for the acknowledgment of what was sent; if it does not come, it is overdue."""
        deadline, seconds = self._clock() + ACK_SECONDS, _FIRST_POLL_SECONDS
        while self._pending:
            self._poll()
            if not self._pending:
                return
            if self._clock() >= deadline:
                count = sum(map(len, self._pending.values()))
                self._overdue.extend(self._pending.values())
                self._pending = {}
                raise self._error(
                    f"{count:,} events were not acknowledged within {ACK_SECONDS:.0f} s, and are"
                    " sent again"
                )
            with self._connection.stop.grace(GRACE_SECONDS):
                time.sleep(seconds)
            seconds = min(seconds * 2, _LAST_POLL_SECONDS)

    def _send(self, batch: Sequence[Item]) -> None:
        body = b"\n".join(item.body for item in batch)
        response = self._connection.post("/event", body, self._headers)
        reply = _Reply.of(response)
        self._check(response, reply)
        if reply.ack_id is None:
            return
        if (other := self._pending.pop(reply.ack_id, None)) is not None:
            self._overdue.append(other)  # a collector that was restarted counts from 0 again
        self._pending[reply.ack_id] = batch

    def _poll(self) -> None:
        body = msgspec.json.encode({"acks": [*self._pending]})
        response = self._connection.post("/ack", body, self._headers)
        reply = _Reply.of(response)
        if response.status == HTTPStatus.BAD_REQUEST and reply.code == _ACK_IS_DISABLED:
            self._pending = {}  # switched off meanwhile
            return
        if reply.acknowledged is None:
            self._check(response, reply)
        acknowledged = reply.acknowledged or ()
        for ack_id in [each for each in self._pending if str(each) in acknowledged]:
            del self._pending[ack_id]

    def _check(self, response: Received, reply: _Reply) -> None:
        """Raise the error of a response that accepts nothing."""
        if response.status != HTTPStatus.BAD_REQUEST or reply.code is None:
            check_status(self._connection.name, response)
        if reply.code in _ACCEPTED:
            return
        if reply.code is None:  # such as the page of a proxy
            start = sanitize_body(response.body)
            raise self._error(f"status {response.status}, but not in the form of HEC: {start}")
        what = f"status {response.status}, code {reply.code}, {sanitize(reply.text)}"
        if reply.code in _OF_AN_EVENT:
            raise self._error(what, Concerns.CONTENT, reply.position)
        raise self._error(what, Concerns.EVERYTHING)

    def _error(
        self, what: str, concerns: Concerns = Concerns.MOMENT, position: int | None = None
    ) -> ReceiverError:
        return ReceiverError(f"{self._connection.name}: {what}", concerns, position=position)


class _Reply(NamedTuple):
    """What the body of a response says; for a body in another form, nothing.

    Attributes:
        code: what happened, as a number; see Splunk's "Troubleshoot HTTP Event Collector".
        text: the same for people.
        position: of the first event that is invalid.
        ack_id: the number by which the acknowledgment of a batch is requested.
        acknowledged: the batches that are indexed; None if the response does not say.
    """

    code: int | None = None
    text: str = ""
    position: int | None = None
    ack_id: int | None = None
    acknowledged: Sequence[str] | None = None

    @classmethod
    def of(cls, response: Received) -> _Reply:
        try:
            reply = msgspec.json.decode(response.body, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return cls()
        acks = reply.get("acks")
        return cls(
            code=_integer(reply.get("code")),
            text=str(reply.get("text")),
            position=_integer(reply.get("invalid-event-number")),
            ack_id=_integer(reply.get("ackId")),
            acknowledged=[each for each in acks if acks[each] is True]
            if isinstance(acks, dict)
            else None,
        )


def fields_of(query: str) -> dict[str, str]:
    """The fields of each envelope, from the query of the URL; an empty one is left out.

    Raises:
        SettingsError: the query has other parameters.
    """
    given = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := [each for each in given if each not in FIELDS]:
        raise unusable(
            f"--to splunk-hec:… has the unknown parameter {sanitize(unknown[0])}: known are"
            f" {', '.join(FIELDS)}"
        )
    return {name: value for name, value in (DEFAULTS | given).items() if value}


def epoch_seconds(instant: Instant) -> bytes:
    """Seconds since 1970 with six digits of a fraction, cut: a collector may read them as a float.

    Splunk has no earlier time than 1970: 0 stands for it.
    """
    seconds, fraction = divmod(max(microseconds(instant) - _EPOCH, 0), 1_000_000)
    return b"%d.%06d" % (seconds, fraction)


def _integer(value: object) -> int | None:
    return value if type(value) is int else None
