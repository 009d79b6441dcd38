"""Any receiver of JSON Lines by HTTP: Vector, Fluent Bit, Cribl, a function."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.outputs.receivers.connection import Connection
from tap_audit_events.outputs.receivers.receiver import Item, Outcome, Receiver
from tap_audit_events.outputs.receivers.responses import check_status


class HttpLines(Receiver):
    """Sends a batch as the body of one POST: a line for each event.

    A batch that is sent again has the same ``Idempotency-Key``, which is derived from the body.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def bodies(self, _: EventPage, texts: Sequence[bytes], /) -> Sequence[bytes]:
        return texts

    def send(self, batch: Sequence[Item]) -> Outcome:
        body = b"\n".join([*(item.body for item in batch), b""])
        headers = {
            "Content-Type": self._connection.line_type,
            "Idempotency-Key": blake2b(body, digest_size=16).hexdigest(),
        }
        check_status(self._connection.name, self._connection.post("", body, headers))
        return Outcome()

    def wait(self) -> None:
        """Nothing: the response was the acknowledgement."""
