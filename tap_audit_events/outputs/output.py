"""The interface of every output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from tap_audit_events.api.event_page import EventPage


class Output(Protocol):
    """An output of one export. Call `begin`, `write` for each page, then `commit` or `discard`.

    Nothing is visible before `commit`. If the process is killed during `commit`, the output is the
    old or the new one, or the next `begin` completes the new one. After a `commit`, a large export
    may continue with the next part.
    """

    PART_EVENTS: ClassVar[int] = 100_000
    """After so many events, an output that commits parts commits one."""

    @property
    def is_part_complete(self) -> bool:
        """Whether to commit what was written before the next page."""
        return False

    def begin(self) -> Mapping[str, Any]:
        """Check that the output can be used, and return the state from which to continue.

        Raises:
            SettingsError: it cannot be used as asked.
            OutputError: it cannot be read or written.
        """

    def write(self, page: EventPage) -> None:
        """Add the events of a page.

        Raises:
            SettingsError: the old file, which is copied first, has other columns.
            OutputError: they cannot be written.
            ContractError: an event is nested too deeply to be written.
        """

    def commit(self, state: Mapping[str, Any] | None) -> None:
        """Make everything visible that was written.

        Args:
            state: covers these events and all earlier ones; None if there was no event.

        Raises:
            SettingsError: something else has changed the output in the meantime.
            OutputError: it cannot be written.
        """

    def discard(self) -> None:
        """Remove what was written and not committed. Never raises."""
