"""The stream ``audit_events``: records by one of two lanes, then STATE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from singer_sdk import Tap
from singer_sdk.singerlib import RecordMessage
from singer_sdk.singerlib.catalog import REPLICATION_INCREMENTAL

from tap_audit_events.config.sdk_settings import SdkSettings
from tap_audit_events.config.settings import Settings, shape_to_discover
from tap_audit_events.errors.exceptions import OutputError
from tap_audit_events.events.exact_json import JsonText, encode, read_record
from tap_audit_events.events.schema import keys_of, schema_of
from tap_audit_events.events.stream_names import REPLICATION_KEY, STREAM
from tap_audit_events.reporting.summary import Report
from tap_audit_events.run.new_events import NewEvents
from tap_audit_events.run.organization import Organization
from tap_audit_events.run.run import Run
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.singer.bookmarks import Bookmarks
from tap_audit_events.singer.catalog import raw_event_warnings, removal_warnings
from tap_audit_events.singer.coverage_stream import CoverageStream
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.run_metrics import write_metrics
from tap_audit_events.singer.sdk_stream import ExactStream
from tap_audit_events.singer.state import to_bookmark

if TYPE_CHECKING:
    from tap_audit_events.singer.batch_files import BatchFiles

MEBIBYTE: Final = 2**20
LARGE_STATE_BYTES: Final = 5 * MEBIBYTE
"""Half of 10 MiB, the buffer of Meltano in some versions; it accepts no longer line."""


class AuditEventsStream(ExactStream):
    """The audit events of one or several organizations: of each, oldest first and each once.

    `settings` returns the checked settings; it is not called in discovery, which needs none.
    """

    def __init__(
        self,
        tap: Tap,
        *,
        runtime: Runtime,
        writer: MessageWriter,
        coverage: CoverageStream,
        settings: Callable[[], tuple[Settings, SdkSettings]],
    ) -> None:
        self._shape = shape_to_discover(tap.config)
        super().__init__(tap, schema=schema_of(self._shape), name=STREAM, now=runtime.now)
        self.primary_keys = keys_of(self._shape)
        self.replication_key = REPLICATION_KEY
        self._runtime = runtime
        self._writer = writer
        self._coverage = coverage
        self._get_settings = settings
        self._output: MessageWriter | BatchFiles = writer
        self._changed: dict[str, Organization] = {}
        self._warned_of_large_state = False
        self._has_news = False  # that the last STATE does not cover
        self._report: Report | None = None

    def _sync_records(self, *_: object, **__: object) -> tuple[()]:  # type: ignore[override]
        """Write the records, then STATE that covers them, even if the run ends early.

        It replaces the SDK's loop, which keeps an inexact bookmark.

        Raises:
            ServiceError: the range could not be read to its end.
            OrganizationsError: the ranges of some organizations could not be read to their end.
            SettingsError: the bookmark does not fit this tap or this organization, or an expression
                of stream_maps fails.
            OutputError: something cannot be written; no STATE follows.
            StoppedError: a signal asked the run to stop.
        """
        try:
            self._output = self._new_output()
            with self.get_record_counter() as counter, self.get_sync_timer():
                try:
                    self._read()
                finally:
                    counter.value = self.records_written  # the SDK would log it each minute
            self._write_checkpoint()
        except OutputError:
            raise
        except Exception:
            self._write_checkpoint()
            raise
        finally:
            self._output.close()
            if self._report is not None:
                self._report.close()
                write_metrics(self._report)
        return ()

    def _new_output(self) -> MessageWriter | BatchFiles:
        settings, of_sdk = self._get_settings()
        if of_sdk.batch_config is None:
            return self._writer
        from tap_audit_events.singer.batch_files import BatchFiles  # noqa: PLC0415 - few runs need it

        return BatchFiles(
            of_sdk.batch_config, self._writer, logger=self.logger, page_size=settings.page_size
        )

    def _read(self) -> None:
        """Read all organizations to their end, and write what is new."""
        settings, _ = self._get_settings()
        self._warn_of_removals()
        keeps_bookmark = self.replication_method == REPLICATION_INCREMENTAL
        self._bookmarks = Bookmarks(
            self.stream_state,
            [each.organization_id for each in settings.each()],
            in_partitions=bool(settings.organizations),
        )
        run = Run(
            settings,
            self._bookmarks.states(settings, self.logger) if keeps_bookmark else {},
            runtime=self._runtime,
            logger=self.logger,
            counts_coverage=self._coverage.selected,
        )
        report = self._report = Report(
            run, logger=self.logger, now=self._runtime.now, keeps_bookmark=keeps_bookmark
        )
        with closing(run.pages()) as pages:
            for page in pages:
                if page is not None:
                    self._note(page)
                    bookmark = page.organization.bookmark
                    with page:
                        self._write(page)
                    if page.organization.bookmark != bookmark:  # also without a record
                        self._has_news = True
                    if page.is_last:
                        self._end(page.organization)
                report.page(page)
                output = self._output
                is_due = output.state_is_old if page is None else output.state_is_due
                if self._has_news and is_due:
                    self._write_checkpoint()
        report.done(records=self.records_written, left_out=self.events_left_out)
        run.check_errors()

    def _note(self, page: NewEvents) -> None:
        """Note that the next STATE has to cover what is written of a page, even after an error."""
        if page.organization.has_read:
            self._changed[page.organization.organization_id] = page.organization
        self._has_news = self._has_news or bool(page.texts)

    def _end(self, organization: Organization) -> None:
        self._has_news = self._coverage.add(organization) or self._has_news
        if not self._output.has_open_file:
            self._write_coverage()
        self._keep_bookmarks()  # so that the organization need not stay in memory

    def _warn_of_removals(self) -> None:
        """Warn of fields that are written although somebody may have meant to leave them out."""
        hidden = [".".join(path[1::2]) for path, selected in self.mask.items() if not selected]
        maps = self.config.get("stream_maps")
        of_raw_event = raw_event_warnings(self._shape, hidden, has_maps=bool(maps))
        known = schema_of(replace(self._shape, has_raw_event=True))  # even if it is off
        known["properties"] = self.effective_schema["properties"] | known["properties"]
        for warning in (*of_raw_event, *removal_warnings(known, self.mask, maps)):
            self.logger.warning("%s", warning)

    # STATE

    def _write_checkpoint(self) -> None:
        """Write STATE for the events that are written."""
        self._output.complete()
        self._write_coverage()
        self._keep_bookmarks()
        self._write_state_message()

    def _write_coverage(self) -> None:
        """Write the coverage records of organizations that have ended."""
        for organization in self._coverage.write_records():
            self._changed[organization.organization_id] = organization

    def _keep_bookmarks(self) -> None:
        """Put the changed bookmarks into the next STATE."""
        if self.replication_method == REPLICATION_INCREMENTAL:
            for name, organization in self._changed.items():
                self._bookmarks.keep(name, to_bookmark(organization.state(), name))
        self._changed.clear()

    def _write_state_message(self) -> None:
        """Write STATE after all records that it covers, even if it is unchanged."""
        self._output.complete()
        super()._write_state_message()
        self._has_news = False
        if self._writer.state_bytes > LARGE_STATE_BYTES and not self._warned_of_large_state:
            self._warned_of_large_state = True
            self.logger.warning(
                "A STATE line has %.1f MiB: Meltano ends a run at a line of more than half of"
                " elt.buffer_size, which may be 10 MiB",
                self._writer.state_bytes / MEBIBYTE,
            )

    # Records

    def write_record(self, message: RecordMessage) -> None:
        self._output.write_records(message.stream, [encode(message.record)], self._now())

    def _write(self, page: NewEvents) -> None:
        if self.is_verbatim:
            self._write_verbatim(page.record_texts())
            return
        for record in page.records():
            self._runtime.stop.check()
            self._check_max_record_limit(self.records_written + self.events_left_out)
            self._write_record_message(record)

    def _write_verbatim(self, texts: Sequence[JsonText]) -> None:
        """The verbatim lane: write the events' own bytes, a page at a time."""
        self._output.write_records(self.name, texts, self._now())
        self.records_written += len(texts)

    # Outside of a run

    def write_schema(self) -> None:
        """Write the SCHEMA of each stream that stream maps create."""
        self._write_schema_message()

    def write_events(self, texts: Sequence[JsonText]) -> None:
        """Write events that are already in the shape of the settings, as a run would."""
        if self.is_verbatim:
            self._write_verbatim(texts)
            return
        for text in texts:
            self._write_record_message(read_record(text))
