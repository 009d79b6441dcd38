"""The events that a receiver refuses for good: kept in the file of `--quarantine`, and counted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.events.instants import brief
from tap_audit_events.outputs.receivers.delivery import RefusedEvent
from tap_audit_events.outputs.receivers.responses import REFUSED_EVENT
from tap_audit_events.run.quarantine import QuarantinedEvent, QuarantineFile

MAX_WARNINGS: Final = 10
"""Later events are only counted: a receiver may refuse thousands for the same reason."""


class RefusedEvents:
    """Appends refused events to a file.

    Args:
        file: the file.
        logger: where warnings go.

    Attributes:
        count: how many events were refused.
    """

    def __init__(self, file: QuarantineFile, logger: logging.Logger) -> None:
        self.count = 0
        self._file = file
        self._logger = logger

    def keep(self, events: Sequence[RefusedEvent]) -> None:
        """Append events; they are on the disk when this returns.

        Raises:
            AuditEventsError: the file cannot be written.
        """
        self._file.add(
            QuarantinedEvent(
                organization_id=item.organization_id,
                text=item.text,
                code=REFUSED_EVENT,
                reason=reason,
            )
            for item, reason in events
        )
        for item, reason in events[: max(0, MAX_WARNINGS - self.count)]:
            self._logger.warning(
                "%s: %s; the event of %s is in %s",
                REFUSED_EVENT, reason, brief(item.instant), sanitize(self._file.path),
            )  # fmt: skip
        self.count += len(events)

    @property
    def note(self) -> str:
        """The end of the line at the end; empty if no event was refused."""
        return f"; {self.count:,} refused, in {sanitize(self._file.path)}" if self.count else ""
