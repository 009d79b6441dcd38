"""The subcommand `export`: reads pages, and writes them to an output."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.api.page_iterator import PageIterator
from tap_audit_events.cli.options import Common
from tap_audit_events.cli.selection import Selection
from tap_audit_events.cli.terminal.reporter import Reporter
from tap_audit_events.config.process import tune_memory
from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.events.event_filter import EventFilter
from tap_audit_events.events.instants import instant_of
from tap_audit_events.outputs.durable import InPlaceError, check_files_differ
from tap_audit_events.outputs.form import Form
from tap_audit_events.outputs.formats import Opened, open_output

Pages: TypeAlias = PageIterator | Generator[EventPage, None, None]

_NEXT: Final = "the next run continues after them"


def run_export(
    to: str,
    table: str | None,
    state_path: Path | None,
    *,
    filters: EventFilter,
    form: Form,
    common: Common,
) -> None:
    """Export events to a path, or into a table of a database.

    Raises:
        AuditEventsError: the output does not have all events; a note says which it has, if any.
    """
    settings = common.settings()
    tune_memory()
    # Arrow's own pool returns memory after each page; the system clears it for the next.
    if not os.environ.get("ARROW_DEFAULT_MEMORY_POOL"):
        os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    if settings.quarantine_file is not None:
        written = {"--to": Path(to)} | ({} if state_path is None else {"--state": state_path})
        check_files_differ(written | {"--quarantine": Path(settings.quarantine_file)})
    events = common.events_of(settings)
    end = settings.end_date or instant_of(datetime.now(UTC))
    with (
        open_output(to, table, state_path, form) as opened,
        closing(Reporter(end, quiet=common.quiet)) as shown,
    ):
        selection = Selection(filters or None, form.name)
        Export(lambda state: events.pages(state=state), opened, shown, selection).run()
        verb = "Added" if opened.extends else "Exported"
        is_new = shown.events or not opened.extends
        shown.done(f"{verb} to {opened.name}" if is_new else f"Nothing new for {opened.name}")


class Export:
    """Copies the pages of a run into an output.

    Args:
        read: reads the pages after a state.
        opened: receives the pages.
        reporter: shows the progress.
        selection: which events are written.
    """

    def __init__(
        self,
        read: Callable[[Mapping[str, Any]], Pages],
        opened: Opened,
        reporter: Reporter,
        selection: Selection,
    ) -> None:
        self._read = read
        self._output, self._name, self._extends, self._unfinished = opened
        self._reporter = reporter
        self._selection = selection
        self._ended_by: AuditEventsError | None = None

    def run(self) -> None:
        """Read and write to the end. If reading fails, an output to extend keeps the events read.

        Raises:
            AuditEventsError: what ended the export early.
        """
        last: EventPage | None = None
        note = self._unfinished or f"{self._name} is as it was before."
        try:
            state = self._selection.continued(self._output.begin(), self._name)
            with closing(self._pages(state)) as pages:
                for read in pages:
                    page = self._selection.of(read)
                    self._output.write(page)
                    self._reporter.page(read, page)
                    last = page
                    if self._output.is_part_complete:
                        self._output.commit(page.state)
                        note = f"{self._reporter.events:,} new events are in {self._name}: {_NEXT}."
            if self._ended_by is None or self._extends:
                if self._extends:
                    changed = f"If {self._name} was changed, the next export completes it."
                    note = self._unfinished or changed
                self._output.commit(None if last is None else last.state)
        except BaseException as error:
            self._output.discard()
            if last is not None and not isinstance(error, InPlaceError):
                error.add_note(note)
            raise
        if self._ended_by is not None:
            self._output.discard()
            self._ended_by.add_note(self._kept_note())
            raise self._ended_by

    def _pages(self, state: Mapping[str, Any]) -> Generator[EventPage, None, None]:
        """The pages up to the end, or up to the error that ends the reading early."""
        try:
            with closing(self._read(state)) as pages:
                yield from pages
        except AuditEventsError as error:
            self._ended_by = error

    def _kept_note(self) -> str:
        if self._unfinished:  # of what was read, a receiver may have refused some
            return self._unfinished
        if not self._extends:
            return f"{self._name} is as it was before."
        if not self._reporter.events:
            return f"Nothing was added to {self._name}."
        return f"The {self._reporter.events:,} events before that are in {self._name}: {_NEXT}."
