"""The stream ``audit_events``: records by one of two lanes, then STATE."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from logging import Logger
from typing import Any

from singer_sdk import Tap
from singer_sdk.singerlib import Catalog, RecordMessage
from singer_sdk.singerlib.catalog import REPLICATION_FULL_TABLE, REPLICATION_INCREMENTAL

from tap_audit_events.config.batch_config import read_batch_config
from tap_audit_events.config.settings import Settings, shape_to_discover
from tap_audit_events.errors.exceptions import OutputError, SettingsError
from tap_audit_events.events.exact_json import encode
from tap_audit_events.events.instants import instant_of
from tap_audit_events.events.schema import schema_of
from tap_audit_events.events.stream_names import (
    ORGANIZATION_KEY,
    PRIMARY_KEY,
    REPLICATION_KEY,
    STREAM,
)
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.fleet_plan import Stage
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.organization_run import OrganizationRun
from tap_audit_events.reader import Reader
from tap_audit_events.reporting.start_warnings import (
    raw_event_warnings,
    start_warnings,
    widened_warning,
)
from tap_audit_events.reporting.summary import Report
from tap_audit_events.runtime import Runtime
from tap_audit_events.singer.bookmarks import Bookmarks
from tap_audit_events.singer.catalog import deselected
from tap_audit_events.singer.coverage_stream import CoverageStream, coverage_entry
from tap_audit_events.singer.messages import MessageWriter, RecordOutput
from tap_audit_events.singer.run_metrics import write_metrics
from tap_audit_events.singer.sdk_stream import ExactStream
from tap_audit_events.singer.state import from_bookmark, to_bookmark, types_never_requested

_METHODS = (REPLICATION_INCREMENTAL, REPLICATION_FULL_TABLE)


class AuditEventsStream(ExactStream):
    """The audit events of one organization, oldest first, each once.

    Args:
        tap: the tap.
        runtime: what surrounds a run.
        writer: writes the messages.
        coverage: writes the coverage records.
        settings: the checked settings; not called in discovery, which needs none.
    """

    def __init__(
        self,
        tap: Tap,
        *,
        runtime: Runtime,
        writer: MessageWriter,
        coverage: CoverageStream,
        settings: Callable[[], Settings],
    ) -> None:
        self._shape = shape_to_discover(tap.config)
        super().__init__(tap, schema=schema_of(self._shape), name=STREAM, now=runtime.now)
        is_fleet = self._shape.organization_id is not None
        self.primary_keys = (ORGANIZATION_KEY, PRIMARY_KEY) if is_fleet else (PRIMARY_KEY,)
        self.replication_key = REPLICATION_KEY
        self._runtime = runtime
        self._writer = writer
        self._coverage = coverage
        self._read_settings = settings
        self._output: RecordOutput = writer
        self._changed: dict[str, OrganizationRun] = {}
        self._report: Report | None = None

    @property
    def is_sorted(self) -> bool:
        """Pages are requested in ascending order."""
        return True

    def apply_catalog(self, catalog: Catalog) -> None:
        """Take selection, schema and replication method from a catalog.

        Raises:
            SettingsError: it names a replication method or key that the stream does not have.
        """
        super().apply_catalog(catalog)
        if self.replication_key and self.replication_key != REPLICATION_KEY:
            raise SettingsError(
                [f"The catalog's replication_key of {STREAM} must be {REPLICATION_KEY}"],
                "AE-CATALOG",
            )
        self.replication_key = REPLICATION_KEY
        if self.replication_method not in _METHODS:
            raise SettingsError(
                [f"The catalog's replication_method of {STREAM} must be {' or '.join(_METHODS)}"],
                "AE-CATALOG",
            )

    def get_records(self, context: object) -> Iterator[dict[str, Any]]:
        """The records of this run's range that were not delivered before, for the SDK to write.

        An event counts as delivered when the next one is requested: by then the SDK has written
        it. So every STATE covers only records that stand before it.

        Raises:
            ServiceError: the range could not be read to its end.
            OrganizationsError: that of some organizations could not be.
            SettingsError: the bookmark does not fit this tap or this organization.
            StoppedError: a signal asked the run to stop.
        """
        del context
        with closing(self._pages()) as pages:
            for delivery in pages:
                for record in delivery.records():
                    self._runtime.stop.check()
                    yield record

    def _pages(self) -> Generator[Delivery, None, None]:
        """Each page of this run's range, to be written; STATE follows if it is due."""
        settings = self._read_settings()
        hidden = [".".join(path) for path in deselected(self.mask)]
        has_maps = bool(self.config.get("stream_maps"))
        for warning in raw_event_warnings(self._shape, hidden, has_maps=has_maps):
            self.logger.warning("%s", warning)
        self._bookmarks = Bookmarks(
            self.stream_state,
            [each.organization_id for each in settings.each()],
            is_fleet=settings.is_fleet,
        )
        reader = Reader(
            settings,
            self._watermark_of,
            runtime=self._runtime,
            logger=self.logger,
            one_page=self.ABORT_AT_RECORD_COUNT is not None,
        )
        report = self._report = self._new_report(reader)
        with closing(reader.pages(report.tick)) as pages:
            for run in pages:
                if run.window is not None:
                    self._changed[run.settings.organization_id] = run
                if run.stage is Stage.PAGE:
                    yield run.delivery
                    run.delivery.commit()
                    report.page(run)
                    run.delivery.finish()
                elif run.stage is Stage.OPENED:
                    report.opened(run)
                    self._begin_coverage(run)
                else:
                    report.ended(run)
                    if not run.error:
                        self._coverage.write(run, self.complete)
                    self._keep_bookmarks()  # so that nothing else of it is held until then
                if self._is_worth_a_state(run) and self._output.state_is_due:
                    self._write_checkpoint()
        self._keep_bookmarks()
        report.done(records=self.records_written, left_out=self.events_left_out)
        reader.check_errors()

    @staticmethod
    def _is_worth_a_state(run: OrganizationRun) -> bool:
        """Whether there is news for a STATE; one follows the end of all organizations anyway."""
        if not run.settings.names_organization:
            return run.stage is Stage.PAGE
        has_record = run.stage is Stage.ENDED and run.delivery.coverage is not None
        return run.delivery.delivered > 0 or has_record

    def _begin_coverage(self, run: OrganizationRun) -> None:
        """Count what a run delivers, if anybody wants to know; a whole table is a chain alone."""
        if self._coverage.selected:
            is_whole = self.replication_method == REPLICATION_FULL_TABLE
            organization_id = run.settings.organization_id
            self._coverage.begin(run, {} if is_whole else self._bookmarks.of(organization_id))

    def _new_report(self, reader: Reader) -> Report:
        return Report(
            reader,
            self._read_settings(),
            logger=self.logger,
            now=self._runtime.now,
            keeps_bookmark=self.replication_method == REPLICATION_INCREMENTAL,
        )

    # What a run begins with

    def _watermark_of(self, settings: Settings, logger: Logger) -> Watermark:
        """What earlier runs delivered; nothing for the replication method FULL_TABLE."""
        if self.replication_method == REPLICATION_FULL_TABLE:
            return Watermark(lookback_seconds=settings.lookback_seconds)
        bookmark = self._bookmarks.of(settings.organization_id)
        added = types_never_requested(bookmark, settings.action_types)
        if added is not None:
            logger.warning("%s", widened_warning(added))
        watermark = from_bookmark(
            bookmark,
            organization_id=settings.organization_id,
            lookback_seconds=settings.lookback_seconds,
            warn=logger.warning,
        )
        now = instant_of(self._runtime.now())
        for warning in start_warnings(watermark, settings, now):
            logger.warning("%s", warning)
        return watermark

    # STATE

    def _write_checkpoint(self) -> None:
        """Write STATE for the events that are written."""
        self._keep_bookmarks()
        self._write_state_message()

    def _keep_bookmarks(self) -> None:
        """Put what changed into the STATE that is written next."""
        if self.replication_method == REPLICATION_INCREMENTAL:
            types = self._read_settings().action_types
            for organization_id, run in self._changed.items():
                bookmark = to_bookmark(
                    run.delivery.watermark, organization_id=organization_id, action_types=types
                )
                self._bookmarks.keep(organization_id, bookmark | coverage_entry(run))
        self._changed.clear()

    def complete(self) -> None:
        """Pass every record that was written on to the target."""
        self._output.complete()

    def _write_state_message(self) -> None:
        """Write STATE behind all records that it covers, also if it is unchanged."""
        self.complete()
        super()._write_state_message()

    # Records

    def write_record(self, message: RecordMessage) -> None:
        """Write a record of the SDK lane."""
        if self._output is self._writer:
            super().write_record(message)
        else:
            self._output.write_records(message.stream, [encode(message.record)], self._now())

    def _sync_records(self, context: Any = None, *, write_messages: bool = True) -> Any:
        """Write the records by one of two lanes; STATE covers them even if that ends early."""
        try:
            self._output = self._new_output()
            if write_messages and self.is_verbatim:
                self._write_pages()
            else:
                yield from super()._sync_records(context, write_messages=write_messages)
        except OutputError:
            raise
        except Exception:
            for run in self._changed.values():
                run.delivery.commit()
            self._write_checkpoint()
            raise
        finally:
            self._output.close()
            if self._report is not None:
                self._report.close()
                write_metrics(self._report)

    def _new_output(self) -> RecordOutput:
        config = read_batch_config(self.config.get("batch_config"))
        if config is None:
            return self._writer
        from tap_audit_events.singer.batch_files import BatchFiles  # noqa: PLC0415 - few runs need it

        page_size = self._read_settings().page_size
        return BatchFiles(config, self._writer, logger=self.logger, page_size=page_size)

    def _write_pages(self) -> None:
        """The verbatim lane: events leave as the bytes they came in, a page at a time."""
        with self.get_record_counter(), self.get_sync_timer(), closing(self._pages()) as pages:
            for delivery in pages:
                texts = delivery.record_texts()
                self._output.write_records(self.name, texts, self._runtime.now())
                delivery.all_written()
                self.records_written += len(texts)
        self._write_state_message()
