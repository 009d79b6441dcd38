"""Delivers batches to a receiver: retries, splits, and finds the events that it refuses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

import backoff

from tap_audit_events.errors.exceptions import OutputError, sanitize_start
from tap_audit_events.events.instants import brief
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.outputs.receivers.receiver import Item, Outcome, Receiver
from tap_audit_events.outputs.receivers.responses import REFUSED_EVENT, Concerns, ReceiverError

MAX_BACKOFF_SECONDS: Final = 60.0
MAX_WAIT_SECONDS: Final = 900.0
"""A longer wait that the receiver requests ends the run, unless new events are followed."""

MAX_REFUSED: Final = 100
"""If the receiver refuses more events in a row, the events are not the reason."""

_NOTHING: Final = -1

_logger: Final = logging.getLogger("tap_audit_events")


class RefusedEvent(NamedTuple):
    """An event that the receiver refuses for good, and why."""

    item: Item
    reason: str


KeepRefused: TypeAlias = Callable[[Sequence[RefusedEvent]], None]
"""Keeps refused events; they are on the disk when it returns."""


class Delivery:
    """Delivers batches to one receiver, each event at least once, or ends with an error.

    Args:
        receiver: accepts the batches.
        name: what messages call it.
        max_retries: how often in a row a batch is sent again; None if without end.
        stop: a signal ends the waits.
        keep_refused: keeps events that are refused for good; None to end the run. It is called
            after the receiver has accepted another event, or at the end of a part.

    Attributes:
        settled: how many events at the start of the last batch need not be sent again.
    """

    def __init__(
        self,
        receiver: Receiver,
        name: str,
        *,
        max_retries: int | None,
        stop: Stop,
        keep_refused: KeepRefused | None = None,
    ) -> None:
        self._receiver = receiver
        self._name = name
        self._max_retries = max_retries
        self._stop = stop
        self._keep_refused = keep_refused
        self._refused: list[RefusedEvent] = []
        self._refused_in_a_row = 0
        self.settled = 0

    def deliver(self, batch: Sequence[Item]) -> None:
        """Send a batch until the receiver has taken each of its events.

        Raises:
            ReceiverError: it does not accept them.
            OutputError: it refuses an event for good.
            StoppedError: a signal ended the wait before a retry.
        """
        waits = self._waits()
        waiting = [batch]
        self.settled = 0
        while waiting:
            part = waiting.pop()
            try:
                outcome = self._receiver.send(part)
            except ReceiverError as error:
                if error.concerns is not Concerns.CONTENT:
                    self._wait(error, waits)
                    waiting.append(part)
                elif len(part) == 1:
                    self._refuse([RefusedEvent(part[0], error.reason)], has_accepted=False)
                    self.settled = len(batch) - sum(map(len, waiting))
                else:
                    waiting += reversed(_split(part, error.position))
                continue
            waits = self._waits()
            again = self._taken(part, outcome)
            if again:
                limited = f"{self._name} has not taken {len(again):,} of {len(part):,} events"
                why = f": {outcome.why_again}" if outcome.why_again else ""
                self._wait(ReceiverError(f"{limited}{why}", Concerns.MOMENT), waits)
                waiting.append(again)
            else:
                self.settled = len(batch) - sum(map(len, waiting))

    def wait(self) -> None:
        """Wait until everything that was sent is acknowledged, with retries; keep what is refused.

        Raises:
            ReceiverError: it is not acknowledged.
            AuditEventsError: the refused events cannot be kept.
            StoppedError: a signal ended the wait.
        """
        waits = self._waits()
        while True:
            try:
                self.wait_once()
            except ReceiverError as error:
                self._wait(error, waits)
            else:
                return

    def wait_once(self) -> None:
        """The same without retries."""
        self._receiver.wait()
        self._keep()

    def _taken(self, part: Sequence[Item], outcome: Outcome) -> list[Item]:
        """Note what a receiver has taken, and return what is to be sent again."""
        has_accepted = len(outcome.refused) + len(outcome.again) < len(part)
        refused = [
            RefusedEvent(part[position], f"{self._name}: {reason}")
            for position, reason in outcome.refused.items()
        ]
        self._refuse(refused, has_accepted=has_accepted)
        return [part[position] for position in outcome.again]

    def _refuse(self, events: Sequence[RefusedEvent], *, has_accepted: bool) -> None:
        """Note that the receiver refuses events; end the run if they cannot be kept.

        Only after it has accepted another event, it is clear that they are the reason.
        """
        if events and self._keep_refused is None:
            (item, reason), *_ = events
            event = f"the event of {brief(item.instant)}, {sanitize_start(item.text, 200)}"
            raise OutputError(f"{reason}; {event}", REFUSED_EVENT)
        self._refused += events
        self._refused_in_a_row = 0 if has_accepted else self._refused_in_a_row + len(events)
        if self._refused_in_a_row > MAX_REFUSED:
            self._refused, self.settled = [], _NOTHING
            reason = f"{events[0].reason}; it accepts none of {MAX_REFUSED} events in a row"
            raise ReceiverError(reason, Concerns.EVERYTHING)
        if has_accepted:
            self._keep()

    def _keep(self) -> None:
        if self._refused and self._keep_refused is not None:
            self._keep_refused(self._refused)
            self._refused = []

    def _wait(self, error: ReceiverError, waits: Iterator[float]) -> None:
        """Wait before a retry; raise the error if there is none."""
        self._stop.check()
        wanted = error.retry_after_seconds
        if error.concerns is not Concerns.MOMENT:
            raise error
        if self._max_retries is not None and wanted > MAX_WAIT_SECONDS:
            reason = f"{error.reason}; its Retry-After of {wanted:,.0f} s is too long to wait for"
            raise ReceiverError(reason, error.concerns)
        seconds = next(waits, None)
        if seconds is None:
            raise error
        seconds = max(seconds, min(wanted, MAX_WAIT_SECONDS))
        _logger.warning("%s. Retrying in %.1f s", error.summary, seconds)
        self._stop.wait(seconds)

    def _waits(self) -> Iterator[float]:
        """The waits before the retries of one batch, in seconds."""
        growing = backoff.expo(max_value=MAX_BACKOFF_SECONDS)
        next(growing)  # a generator of backoff must be started: its first item is not a wait
        count = 0
        while self._max_retries is None or count < self._max_retries:
            count += 1
            yield backoff.full_jitter(next(growing))


def _split(part: Sequence[Item], position: int | None) -> list[Sequence[Item]]:
    """Smaller parts: the event that the receiver names alone, else halves."""
    if position is None or not 0 <= position < len(part):
        middle = len(part) // 2
        return [part[:middle], part[middle:]]
    parts = [part[:position], part[position : position + 1], part[position + 1 :]]
    return [each for each in parts if each]
