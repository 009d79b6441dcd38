"""Delivers batches to a receiver: retries, splits, and finds the events that it refuses."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import backoff

from tap_audit_events.errors.exceptions import OutputError, sanitize_start
from tap_audit_events.events.instants import brief
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.outputs.receivers.receiver import Item, Outcome, Receiver
from tap_audit_events.outputs.receivers.responses import REFUSED_EVENT, Concerns, ReceiverError

MAX_BACKOFF_SECONDS: Final = 60.0
MAX_WAIT_SECONDS: Final = 900.0
"""A longer wait that the receiver requests ends the run, unless new events are followed."""

MAX_REFUSED_FIRST: Final = 20
"""If the receiver refuses so many events before it accepts one, it is not the events."""

_logger: Final = logging.getLogger("tap_audit_events")


class KeepRefused(Protocol):
    """Keeps an event that the receiver refuses for good, with the reason."""

    def __call__(self, item: Item, reason: str) -> None: ...


class Delivery:
    """Delivers batches to one receiver, each event at least once, or ends with an error.

    Args:
        receiver: accepts the batches.
        name: what messages call it.
        max_retries: how often in a row a batch is sent again; None if without end.
        stop: a signal ends the waits.
        keep_refused: what happens to an event that is refused for good; None to end the run.

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
        self._has_accepted = False
        self._refused_first = 0
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
                    self._refuse(part[0], error.reason)
                    self.settled = len(batch) - sum(map(len, waiting))
                else:
                    waiting += reversed(_split(part, error.position))
                continue
            waits = self._waits()
            again = self._taken(part, outcome)
            if again:
                limited = f"{self._name} has not taken {len(again):,} of {len(part):,} events"
                self._wait(ReceiverError(limited, Concerns.MOMENT), waits)
                waiting.append(again)
            else:
                self.settled = len(batch) - sum(map(len, waiting))

    def wait(self) -> None:
        """Wait until everything that was sent is acknowledged, with retries."""
        waits = self._waits()
        while True:
            try:
                return self._receiver.wait()
            except ReceiverError as error:
                self._wait(error, waits)

    def _taken(self, part: Sequence[Item], outcome: Outcome) -> list[Item]:
        """Note what a receiver has taken, and return what is to be sent again."""
        if len(outcome.refused) + len(outcome.again) < len(part):
            self._has_accepted = True
        for position, reason in outcome.refused.items():
            self._refuse(part[position], f"{self._name}: {reason}")
        return [part[position] for position in outcome.again]

    def _refuse(self, item: Item, reason: str) -> None:
        event = f"the event of {brief(item.instant)}, {sanitize_start(item.text, 200)}"
        if self._keep_refused is None:
            raise OutputError(f"{reason}; {event}", REFUSED_EVENT)
        if not self._has_accepted:
            self._refused_first += 1
            if self._refused_first > MAX_REFUSED_FIRST:
                reason = f"{reason}; it has accepted none of {MAX_REFUSED_FIRST} events"
                raise ReceiverError(reason, Concerns.EVERYTHING)
        self._keep_refused(item, reason)

    def _wait(self, error: ReceiverError, waits: Iterator[float]) -> None:
        """Wait before a retry; raise the error if there is none."""
        self._stop.check()
        wanted = error.retry_after_seconds
        if error.concerns is not Concerns.MOMENT:
            raise error
        if self._max_retries is not None and wanted > MAX_WAIT_SECONDS:
            raise error
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
