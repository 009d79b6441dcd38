"""Writes records, STATE and the status of the stream, for ``read``."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from logging import Logger
from typing import Any

from tap_audit_events.airbyte.messages import MessageWriter, stream_status
from tap_audit_events.airbyte.state import state_of
from tap_audit_events.api.run_states import RunStates
from tap_audit_events.config.settings import Settings
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.reporting.summary import Report
from tap_audit_events.run.organization import OrganizationRun
from tap_audit_events.run.organizations_plan import Stage
from tap_audit_events.run.run import Reader
from tap_audit_events.run.runtime import Runtime


def milliseconds_at(moment: datetime) -> int:
    """A time as Airbyte writes it: milliseconds since 1970."""
    return int(moment.timestamp() * 1000)


class Sync:
    """Writes the records, STATE and status of one ``read``."""

    def __init__(
        self, settings: Settings, writer: MessageWriter, *, runtime: Runtime, logger: Logger
    ) -> None:
        self._settings = settings
        self._writer = writer
        self._runtime = runtime
        self._logger = logger
        self._is_running = False
        self._records = 0
        self._changed: dict[str, OrganizationRun] = {}
        self._new_states: dict[str, dict[str, Any]] = {}

    def run(self, state: dict[str, Any]) -> None:
        """Write every event of the run's range that the state does not cover.

        STATE covers what was written, even if the run ends early.

        Args:
            state: the stream's state, empty for a first run and for a full refresh.

        Raises:
            SettingsError: the state cannot be used.
            ServiceError: the range could not be read to its end.
            OrganizationsError: the ranges of some organizations could not be read to their end.
            StoppedError: a signal asked the run to stop.
            OutputError: stdout cannot be written to.
        """
        self._write_status("STARTED")
        try:
            self._read(state)
        except Exception:
            self._write_status("INCOMPLETE")
            raise
        self._write_status("COMPLETE")

    def _read(self, state: dict[str, Any]) -> None:
        def watermark_of(settings: Settings, logger: Logger) -> Watermark:
            return self._states.watermark(settings, now=self._runtime.now(), logger=logger)

        self._states = RunStates(state, as_list=bool(self._settings.organizations))
        reader = Reader(self._settings, watermark_of, runtime=self._runtime, logger=self._logger)
        try:
            self._write_pages(reader)
        finally:  # after an `OutputError`, this raises it again
            self._write_state()

    def _write_pages(self, reader: Reader) -> None:
        now = self._runtime.now
        report = Report(reader, self._settings, logger=self._logger, now=now, keeps_bookmark=True)

        def idle() -> None:
            report.tick()
            if self._writer.record_count and self._writer.state_is_old:
                self._write_state()

        try:
            with closing(reader.pages(idle)) as runs:
                for run in runs:
                    self._changed[run.settings.organization_id] = run
                    self._handle(run, report)
            report.done(records=self._records, left_out=0)
        finally:
            report.close()
        reader.check_errors()

    def _handle(self, run: OrganizationRun, report: Report) -> None:
        """Handle the stage that an organization has reached: see `Stage`."""
        if run.stage is Stage.OPENED:
            report.opened(run)
        elif run.stage is Stage.ENDED:
            report.ended(run)
        else:
            run.write_page(self._write_page)
            report.page(run)
            if self._writer.state_is_due:
                self._write_state()

    def _write_page(self, delivery: Delivery) -> None:
        now = self._runtime.now()
        if not self._is_running:
            self._write_status("RUNNING")
            self._is_running = True
        self._writer.write_records(delivery.record_texts(), milliseconds_at(now))
        delivery.all_written()
        self._records += len(delivery.texts())

    def _write_state(self) -> None:
        """Write STATE for the records written so far; none if the given state could not be used."""
        for name, run in self._changed.items():
            known = {} if run.has_read else self._states.of(name)
            self._new_states[name] = known or state_of(run.delivery.watermark, run.settings)
        self._changed.clear()
        if self._new_states:
            self._writer.write_state(self._states.with_changed(self._new_states))

    def _write_status(self, status: str) -> None:
        self._writer.write(stream_status(status, milliseconds_at(self._runtime.now())))
