"""What ``read`` does: records, STATE, and how far the stream is."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime
from logging import Logger
from typing import Any

from tap_audit_events.airbyte.messages import MessageWriter, stream_status
from tap_audit_events.airbyte.state import state_of
from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import OutputError
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.reader import Reader
from tap_audit_events.reporting.summary import Report, bookmark_shown
from tap_audit_events.resume import resume
from tap_audit_events.runtime import Runtime


def milliseconds_at(moment: datetime) -> int:
    """A time as Airbyte writes it: milliseconds since 1970."""
    return int(moment.timestamp() * 1000)


class Sync:
    """One read of the stream.

    Args:
        settings: what to read, and how.
        writer: writes the messages.
        runtime: what surrounds the run.
        logger: is told how far the run is.
    """

    def __init__(
        self, settings: Settings, writer: MessageWriter, *, runtime: Runtime, logger: Logger
    ) -> None:
        self._settings = settings
        self._writer = writer
        self._runtime = runtime
        self._logger = logger
        self._is_running = False

    def run(self, state: dict[str, Any]) -> None:
        """Write every event of the run's range that the state does not cover.

        STATE covers what was written, also if the run ends early.

        Args:
            state: the stream's state, empty for a first run and for a full refresh.

        Raises:
            SettingsError: the state cannot be used.
            ServiceError: the range could not be read to its end.
            StoppedError: a signal asked the run to stop.
            OutputError: stdout cannot be written to.
        """
        self._tell("STARTED")
        try:
            self._read(state)
        except OutputError:
            raise
        except Exception:
            self._tell("INCOMPLETE")
            raise
        self._tell("COMPLETE")

    def _read(self, state: dict[str, Any]) -> None:
        watermark = resume(self._settings, state, runtime=self._runtime, logger=self._logger)
        reader = Reader(self._settings, watermark, runtime=self._runtime, logger=self._logger)
        try:
            self._write_pages(reader)
        except OutputError:
            raise
        except Exception:
            reader.delivery.commit()
            self._write_state(watermark)
            raise
        self._write_state(watermark)

    def _write_pages(self, reader: Reader) -> None:
        if reader.window is None:
            self._logger.warning(
                "Nothing to read: start_date or the bookmark (%s) lies after end_date or now",
                bookmark_shown(reader.delivery.watermark),
            )
            return
        now = self._runtime.now
        report = Report(reader, self._settings, logger=self._logger, now=now, keeps_bookmark=True)
        try:
            with closing(reader.pages(report.tick)) as pages:
                for delivery in pages:
                    self._write_page(delivery, now())
                    report.page(delivery)
                    delivery.finish()
                    if self._writer.state_is_due:
                        self._write_state(delivery.watermark)
            report.done(reader.plan.windows, records=reader.delivery.delivered, left_out=0)
        finally:
            report.close()

    def _write_page(self, delivery: Delivery, now: datetime) -> None:
        if not self._is_running:
            self._tell("RUNNING")
            self._is_running = True
        self._writer.write_records(delivery.record_texts(), milliseconds_at(now))
        delivery.all_written()

    def _write_state(self, watermark: Watermark) -> None:
        self._writer.write_state(state_of(watermark, self._settings))

    def _tell(self, status: str) -> None:
        self._writer.write(stream_status(status, milliseconds_at(self._runtime.now())))
