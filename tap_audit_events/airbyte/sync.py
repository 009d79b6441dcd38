"""Writes records, STATE and the status of the stream, for ``read``."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from logging import Logger
from typing import Any

from tap_audit_events.airbyte.messages import AirbyteWriter, stream_status
from tap_audit_events.api.run_states import RunStates
from tap_audit_events.config.settings import Settings
from tap_audit_events.reporting.summary import Report
from tap_audit_events.run.new_events import NewEvents
from tap_audit_events.run.organization import Organization
from tap_audit_events.run.run import Run
from tap_audit_events.run.runtime import Runtime


def milliseconds_at(moment: datetime) -> int:
    """A time as Airbyte writes it: milliseconds since 1970."""
    return int(moment.timestamp() * 1000)


class Sync:
    """Writes the records, STATE and status of one ``read``."""

    def __init__(
        self, settings: Settings, writer: AirbyteWriter, *, runtime: Runtime, logger: Logger
    ) -> None:
        self._settings = settings
        self._writer = writer
        self._runtime = runtime
        self._logger = logger
        self._is_running = self._has_news = False
        self._records = 0
        self._changed: dict[str, Organization] = {}
        self._new_states: dict[str, dict[str, Any]] = {}

    def run(self, state: dict[str, Any]) -> None:
        """Write every event of the run's range that the state does not cover.

        The state is empty for a first run and for a full refresh. STATE covers what was written,
        even if an `AuditEventsError` ends the run early.
        """
        self._write_status("STARTED")
        try:
            self._read(state)
        except Exception:
            self._write_status("INCOMPLETE")
            raise
        self._write_status("COMPLETE")

    def _read(self, state: dict[str, Any]) -> None:
        self._states = RunStates(state, as_list=bool(self._settings.organizations))
        run = Run(
            self._settings,
            self._states.of_all(self._settings),
            runtime=self._runtime,
            logger=self._logger,
        )
        report = Report(run, logger=self._logger, now=self._runtime.now, keeps_bookmark=True)
        try:
            with closing(run.pages()) as pages:
                for page in pages:
                    if page is not None:
                        self._changed[page.organization.organization_id] = page.organization
                        bookmark = page.organization.bookmark
                        with page:
                            self._write_records(page)
                        if page.texts or page.organization.bookmark != bookmark:
                            self._has_news = True
                        if page.is_last:
                            self._keep_states()  # so that it need not stay in memory
                    report.page(page)
                    if self._has_news and self._writer.state_is_due:
                        self._write_state()
            report.done(records=self._records, left_out=0)
        finally:
            report.close()
            self._write_state()  # after an `OutputError`, this raises it again
        run.check_errors()

    def _write_records(self, page: NewEvents) -> None:
        now = self._runtime.now()
        if not page.is_last and not self._is_running:
            self._write_status("RUNNING")
            self._is_running = True
        self._writer.write_records(page.record_texts(), milliseconds_at(now))
        self._records += len(page.texts)

    def _keep_states(self) -> None:
        """Put the changed states into the next STATE."""
        for name, organization in self._changed.items():
            self._new_states[name] = dict(organization.state())
        self._changed.clear()

    def _write_state(self) -> None:
        """Write STATE for the records written so far."""
        self._keep_states()
        self._writer.write_state(self._states.with_changed(self._new_states))
        self._has_news = False

    def _write_status(self, status: str) -> None:
        self._writer.write(stream_status(status, milliseconds_at(self._runtime.now())))
