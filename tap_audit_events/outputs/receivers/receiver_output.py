"""An output that is a receiver: a batch is sent, acknowledged, then the state moves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.outputs.output import Output
from tap_audit_events.outputs.receivers.delivery import Delivery
from tap_audit_events.outputs.receivers.receiver import Item, Receiver, Texts
from tap_audit_events.outputs.receivers.receiver_state import ReceiverState

MAX_BATCH_BYTES: Final = 4_000_000
"""Before compression. If a receiver accepts less, batches are split."""

PART_SECONDS: Final = 10.0


class ReceiverOutput(Output):
    """Sends events to a receiver in batches.

    Args:
        receiver: what accepts them.
        delivery: delivers the batches to it.
        state_file: says what it has acknowledged.
        texts: the JSON texts of a page's events.
        batch_events: the most events in a batch.
        clock: a clock in seconds.
    """

    PART_EVENTS = 10_000

    def __init__(
        self,
        receiver: Receiver,
        delivery: Delivery,
        state_file: ReceiverState,
        *,
        texts: Texts,
        batch_events: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._receiver = receiver
        self._delivery = delivery
        self._state_file = state_file
        self._texts = texts
        self._batch_events = batch_events
        self._clock = clock
        self._batch: list[Item] = []
        self._bytes = 0
        self._ends: list[tuple[int, EventPage]] = []
        self._since_commit = 0
        self._committed_at = clock()

    @property
    def is_part_complete(self) -> bool:
        return (
            self._since_commit >= self.PART_EVENTS
            or self._clock() - self._committed_at >= PART_SECONDS
        )

    def begin(self) -> Mapping[str, Any]:
        self._batch, self._bytes, self._ends = [], 0, []
        self._mark_committed()
        return self._state_file.read()

    def write(self, page: EventPage) -> None:
        raw = page.raw
        bodies = self._receiver.bodies(page, self._texts(page))
        for body, text, instant in zip(bodies, raw, page.instants, strict=True):
            if self._bytes + len(body) > MAX_BATCH_BYTES:
                self._flush()
            self._batch.append(Item(body, text, instant, page.organization_id))
            self._bytes += len(body)
            if len(self._batch) >= self._batch_events:
                self._flush()
        self._since_commit += len(raw)
        self._ends.append((len(self._batch), page))

    def commit(self, state: Mapping[str, Any] | None) -> None:
        self._flush()
        self._delivery.wait()
        if state is not None:
            self._state_file.write(state)
        self._ends = []
        self._mark_committed()

    def discard(self) -> None:
        """Store the state of the last page that was acknowledged as a whole.

        What was sent cannot be taken back; so the next run sends as little as possible again.
        """
        settled = [page for count, page in self._ends if count <= self._delivery.settled]
        if settled:
            with suppress(AuditEventsError):
                self._delivery.wait_once()
                self._state_file.write(settled[-1].state)

    def _mark_committed(self) -> None:
        self._since_commit = 0
        self._committed_at = self._clock()

    def _flush(self) -> None:
        if self._batch:
            self._delivery.deliver(self._batch)
            self._delivery.settled = 0  # of the next batch
            self._batch, self._bytes = [], 0
            self._ends = [(0, page) for _, page in self._ends[-1:]]
