"""The subcommand `export`: a fork of this process reads pages, and this process writes them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.options import Common
from tap_audit_events.cli.reading_process import Pages, Read, ReadingProcess
from tap_audit_events.cli.terminal.reporter import Reporter
from tap_audit_events.config.process import tune_memory
from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import AuditEventsError, OutputError
from tap_audit_events.events.instants import instant_of
from tap_audit_events.outputs.durable import (
    InPlaceError,
    check_files_differ,
    check_is_file,
    resolved,
)
from tap_audit_events.outputs.formats import format_of, open_output
from tap_audit_events.outputs.lock import locked
from tap_audit_events.outputs.output import Output
from tap_audit_events.outputs.state_file import StateFile


def run_export(to: str, state_path: Path | None, common: Common) -> None:
    """Export events to a path.

    Raises:
        AuditEventsError: the output does not have all events; a note says which it has, if any.
    """
    settings = common.settings()
    format_ = format_of(to)
    path = resolved(Path(to))
    if format_ != "/":
        check_is_file(path)
    if state_path is not None:
        check_is_file(state_path)
        check_files_differ({"--to": path, "--state": state_path})
    state_file = None if state_path is None else StateFile(resolved(state_path), path)
    tune_memory()
    with ExitStack() as entered:
        read = entered.enter_context(_reading(common, settings))  # a fork must hold no lock
        if state_file is not None:
            entered.enter_context(locked(state_file.path))
        if state_file is None or format_ != "/":
            entered.enter_context(locked(path))
        # Arrow's own pool returns memory after each page; the system clears it for the next.
        if not os.environ.get("ARROW_DEFAULT_MEMORY_POOL"):
            os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
        output = open_output(format_, path, state_file, common.logger)
        end = settings.end_date or instant_of(datetime.now(UTC))
        reporter = Reporter(end, quiet=common.quiet)
        export = Export(read, output, to, reporter, extends=state_file is not None)
        with closing(reporter):
            export.run()
        reporter.done(export.summary)


def _reading(common: Common, settings: Settings) -> AbstractContextManager[Read]:
    """The function that reads pages, in a fork except on macOS, whose libraries may crash there."""
    events = common.events_of(settings)

    def read(state: Mapping[str, Any]) -> Pages:
        return events.pages(state=state)

    if sys.platform == "darwin":
        return nullcontext(read)
    return ReadingProcess(read, settings.record_shape, common.stop)


class Export:
    """Copies the pages of a run into an output.

    Args:
        read: reads the pages after a state.
        output: receives the pages.
        name: the output's name in messages.
        reporter: shows the progress.
        extends: whether new events are added to the output; else the output is replaced.
    """

    def __init__(
        self, read: Read, output: Output, name: str, reporter: Reporter, *, extends: bool
    ) -> None:
        self._read = read
        self._output = output
        self._name = name
        self._reporter = reporter
        self._extends = extends
        self._last: EventPage | None = None

    def run(self) -> None:
        """Read and write to the end. If reading fails, an output to extend keeps the events read.

        Raises:
            AuditEventsError: what ended the export early.
        """
        note = f"{self._name} is as it was before."
        try:
            ended_by = self._copy(self._output.begin())
            if ended_by is None or self._extends:
                if self._extends:
                    note = f"If {self._name} was changed, the next export completes it."
                self._output.commit(None if self._last is None else self._last.state)
        except BaseException as error:
            self._output.discard()
            if self._last is not None and not isinstance(error, InPlaceError):
                error.add_note(note)
            raise
        if ended_by is not None:
            self._output.discard()
            ended_by.add_note(self._kept_note())
            raise ended_by

    @property
    def summary(self) -> str:
        """What the export did, for the line at the end."""
        if self._extends and not self._reporter.events:
            return f"Nothing new for {self._name}"
        return f"Added to {self._name}" if self._extends else f"Exported to {self._name}"

    def _copy(self, state: Mapping[str, Any]) -> AuditEventsError | None:
        """Write all pages, and return the error that ended the reading early, if any.

        Raises:
            SettingsError: as `Output.write`.
            OutputError: they cannot be written, or the process that reads was killed.
            ContractError: an event is nested too deeply to be written.
        """
        with closing(self._read(state)) as pages:
            while True:
                try:
                    page = next(pages, None)
                except OutputError:
                    raise
                except AuditEventsError as error:
                    return error
                if page is None:
                    return None
                self._output.write(page)
                self._last = page
                self._reporter.page(page)

    def _kept_note(self) -> str:
        if not self._extends:
            return f"{self._name} is as it was before."
        if not self._reporter.events:
            return f"Nothing was added to {self._name}."
        return (
            f"The {self._reporter.events:,} events before that are in {self._name} and in the state"
            " file: the next export continues after them."
        )
