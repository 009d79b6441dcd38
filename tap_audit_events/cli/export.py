"""The subcommand `export`: pages are read by this thread and written by another."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tap_audit_events.api.audit_events import AuditEvents
from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.options import Common
from tap_audit_events.cli.outputs.formats import format_of, open_output
from tap_audit_events.cli.outputs.lock import locked
from tap_audit_events.cli.outputs.output import Output
from tap_audit_events.cli.outputs.state_file import StateFile
from tap_audit_events.cli.outputs.writer_thread import WriterThread
from tap_audit_events.cli.reporter import Reporter
from tap_audit_events.errors.exceptions import AuditEventsError, OutputError
from tap_audit_events.events.instants import instant_of


def run_export(to: str, state_path: Path | None, common: Common) -> None:
    """Export events to a path.

    Args:
        to: the path, whose suffix says the format.
        state_path: the state file of an incremental export.
        common: what to read.

    Raises:
        AuditEventsError: the output does not have all events; the notes say what it has.
    """
    settings = common.settings()
    format_ = format_of(to)
    path = Path(to).resolve()
    state_file = None if state_path is None else StateFile(state_path.resolve(), path)
    with ExitStack() as locks:
        if state_file is not None:
            locks.enter_context(locked(state_file.path))
        if state_file is None or format_ != "/":
            locks.enter_context(locked(path))
        # Arrow's own pool hands memory back to the system, which clears it for the next page.
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        output = open_output(format_, path, state_file, common.logger)
        gc.freeze()  # a page creates thousands of objects, all freed by reference counting:
        gc.set_threshold(100_000)  # the garbage collector would search them without finding any
        end = settings.end_date or instant_of(datetime.now(UTC))
        reporter = Reporter(end, quiet=common.quiet)
        events = common.events_of(settings)
        export = Export(events, output, to, reporter, extends=state_file is not None)
        with closing(reporter):
            export.run()
        reporter.done(export.summary)


class Export:
    """One export.

    Args:
        events: what is read.
        output: where it is written.
        name: the output, for people.
        reporter: is told of each page.
        extends: whether the output keeps what it has, and gets what is new.
    """

    def __init__(
        self, events: AuditEvents, output: Output, name: str, reporter: Reporter, *, extends: bool
    ) -> None:
        self._events = events
        self._output = output
        self._name = name
        self._reporter = reporter
        self._extends = extends
        self._last: EventPage | None = None

    def run(self) -> None:
        """Read and write to the end. After an error, an output that grows keeps what was read.

        Raises:
            AuditEventsError: what ended the export early.
        """
        try:
            ended_by = self._copy(self._output.begin())
            if ended_by is None or self._extends:
                self._output.commit(None if self._last is None else self._last.state)
        except BaseException as error:
            self._output.discard()
            if self._last is not None:
                error.add_note(f"{self._name} is as it was before.")
            raise
        if ended_by is not None:
            self._output.discard()
            ended_by.add_note(self._kept())
            raise ended_by

    @property
    def summary(self) -> str:
        """What came of it."""
        if self._extends and self._last is None:
            return f"Nothing new for {self._name}"
        return f"Added to {self._name}" if self._extends else f"Exported to {self._name}"

    def _copy(self, state: Mapping[str, Any]) -> AuditEventsError | None:
        """Write all pages; the error that ended the reading early, if one did.

        Raises:
            OutputError: they cannot be written.
        """
        with WriterThread(self._output.write) as writer, ExitStack() as reading:
            try:
                pages = self._events.pages(state=state)
                reading.callback(pages.close)
                for page in pages:
                    writer.put(page)
                    self._last = page
                    self._reporter.page(page)
            except OutputError:
                raise
            except AuditEventsError as error:
                return error
            finally:
                writer.finish()
        return None

    def _kept(self) -> str:
        if not self._extends:
            return f"{self._name} is as it was before."
        if self._last is None:
            return f"Nothing was added to {self._name}."
        return (
            f"The {self._reporter.events:,} events before that are in {self._name} and in the state"
            " file: the next export continues after them."
        )
