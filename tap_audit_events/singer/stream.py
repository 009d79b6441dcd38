"""The stream ``audit_events`` as the SDK sees it: records by one of two lanes, then STATE."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from math import inf
from typing import Any

from singer_sdk import Stream, Tap
from singer_sdk.exceptions import (
    AbortedSyncFailedException,
    AbortedSyncPausedException,
    MappingError,
)
from singer_sdk.helpers.conform import TypeConformanceLevel
from singer_sdk.mapper import CustomStreamMap, SameRecordTransform, StreamMap
from singer_sdk.metrics import Counter
from singer_sdk.singerlib import Catalog, RecordMessage, StateMessage
from singer_sdk.singerlib.catalog import REPLICATION_FULL_TABLE, REPLICATION_INCREMENTAL

from tap_audit_events import PRIMARY_KEY, REPLICATION_KEY, STREAM
from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OutputError,
    SettingsError,
    sanitize,
    service_error,
)
from tap_audit_events.events.schema import SCHEMA
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.reader import Reader, Runtime
from tap_audit_events.reporting.summary import Report, bookmark_shown
from tap_audit_events.singer.catalog import Path, deselected, leave_out
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.state import from_bookmark, to_bookmark, types_never_requested

_METHODS = (REPLICATION_INCREMENTAL, REPLICATION_FULL_TABLE)


class AuditEventsStream(Stream):
    """The audit events of one organization, oldest first, each once.

    Args:
        tap: the tap.
        runtime: what surrounds a run.
        writer: writes the messages.
        settings: the checked settings; not called in discovery, which needs none.
    """

    TYPE_CONFORMANCE_LEVEL = TypeConformanceLevel.NONE  # fields that the schema lacks are kept
    STATE_MSG_FREQUENCY = sys.maxsize  # STATE is written at the end of a page, by `_pages`

    def __init__(
        self,
        tap: Tap,
        *,
        runtime: Runtime,
        writer: MessageWriter,
        settings: Callable[[], Settings],
    ) -> None:
        super().__init__(tap, schema=SCHEMA, name=STREAM)
        self.primary_keys = (PRIMARY_KEY,)
        self.replication_key = REPLICATION_KEY
        self.logger.addFilter(_drop_alarm_for_expected_errors)
        self._runtime = runtime
        self._writer = writer
        self._read_settings = settings
        self._delivery = Delivery(Watermark())
        self._left_out: list[Path] | None = None
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
        self._left_out = None
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
        watermark = self._read_watermark()
        reader = self._new_reader(watermark)
        self._delivery = reader.delivery
        if reader.window is None:
            self.logger.warning(
                "Nothing to read: start_date or the bookmark (%s) lies after end_date or now",
                bookmark_shown(watermark),
            )
            return
        report = self._report = self._new_report(reader)
        with closing(reader.pages(report.tick)) as pages:
            for delivery in pages:
                yield delivery
                report.page(delivery)
                delivery.finish()
                if self._writer.state_is_due:
                    self._write_checkpoint()
        self._keep_bookmark()
        report.done(reader.plan.windows)

    def _new_reader(self, watermark: Watermark) -> Reader:
        return Reader(
            self._read_settings(),
            watermark,
            runtime=self._runtime,
            logger=self.logger,
            one_page=self.ABORT_AT_RECORD_COUNT is not None,
        )

    def _new_report(self, reader: Reader) -> Report:
        return Report(
            reader,
            self._read_settings(),
            logger=self.logger,
            now=self._runtime.now,
            keeps_bookmark=self.replication_method == REPLICATION_INCREMENTAL,
        )

    # What a run begins with

    def _read_watermark(self) -> Watermark:
        """What earlier runs delivered; nothing for the replication method FULL_TABLE."""
        settings = self._read_settings()
        if self.replication_method == REPLICATION_FULL_TABLE:
            return Watermark(lookback_seconds=settings.lookback_seconds)
        added = types_never_requested(self.stream_state, settings.action_types)
        if added is not None:
            self.logger.warning(
                "action_types was widened since the bookmark was written: older events of %s were"
                " never requested. To get them, run once without state.",
                ", ".join(map(sanitize, added)) or "the other types",
            )
        return from_bookmark(
            self.stream_state,
            organization_id=settings.organization_id,
            lookback_seconds=settings.lookback_seconds,
            warn=self.logger.warning,
        )

    # STATE

    def _write_checkpoint(self) -> None:
        """Write STATE for the events that are written."""
        self._keep_bookmark()
        self._write_state_message()

    def _keep_bookmark(self) -> None:
        """Put the watermark into the STATE that is written next."""
        if self.replication_method == REPLICATION_INCREMENTAL:
            settings = self._read_settings()
            bookmark = to_bookmark(
                self._delivery.watermark,
                organization_id=settings.organization_id,
                action_types=settings.action_types,
            )
            self.stream_state.update(bookmark)

    # Overrides of the SDK, which would otherwise lose or repeat events. Each private name is listed
    # with its reason in docs/adr/0002-what-is-taken-from-inside-the-sdk.md.

    def get_replication_key_signpost(self, context: object = None) -> None:
        """No signpost: it would go into STATE, and the bookmark is exact without it."""
        del context

    def get_batch_config(self, config: object) -> None:
        """No BATCH messages: STATE would not follow the files that it covers."""
        del config

    def get_record_counter(self, **options: Any) -> Counter:
        """One METRIC line at the end: the SDK's would count from zero again each minute."""
        return super().get_record_counter(**{"log_interval": inf, **options})

    @property
    def emit_activate_version_messages(self) -> bool:
        """Never: a target would delete the events that the service no longer shows."""
        return False

    def _sync_records(self, context: Any = None, *, write_messages: bool = True) -> Any:
        """Write the records by one of two lanes; STATE covers them even if that ends early."""
        try:
            if write_messages and self._is_verbatim:
                self._write_pages()
            else:
                yield from super()._sync_records(context, write_messages=write_messages)
        except OutputError:
            raise
        except Exception:
            self._delivery.commit()
            self._write_checkpoint()
            raise
        finally:
            if self._report is not None:
                self._report.close()

    @property
    def _is_verbatim(self) -> bool:
        """Whether the SDK would write each event just as it came."""
        (stream_map, *more) = self.stream_maps
        return (
            type(stream_map) is SameRecordTransform
            and not more
            and not stream_map.flattening_enabled
            and all(self.mask.values())
            and self.ABORT_AT_RECORD_COUNT is None
        )

    def _write_pages(self) -> None:
        """The verbatim lane: events leave as the bytes they came in, a page at a time."""
        with (
            self.get_record_counter() as counter,
            self.get_sync_timer(),
            closing(self._pages()) as pages,
        ):
            for delivery in pages:
                texts = delivery.texts()
                self._writer.write_records(self.name, texts, self._runtime.now())
                delivery.all_written()
                counter.increment(len(texts))
        self._write_state_message()

    def _write_starting_replication_value(self, context: object) -> None:
        """The bookmark is read from the state as it is; the SDK would compare it inexactly."""

    def _increment_stream_state(self, latest_record: object, *, context: object = None) -> None:
        """The bookmark moves with pages; the SDK would compare texts instead of instants."""

    def _write_state_message(self) -> None:
        """Write STATE, also an unchanged one: it is always the last line."""
        self._tap.write_message(StateMessage(value=self.tap_state))

    def _generate_record_messages(
        self, record: dict[str, Any]
    ) -> Generator[RecordMessage, None, None]:
        """The RECORD of each stream map, without what is not selected."""
        if self._left_out is None:
            self._left_out = deselected(self.mask)
        leave_out(record, self._left_out)
        for stream_map in self.stream_maps:
            mapped = _mapped(stream_map, record)
            if mapped is not None:
                yield RecordMessage(
                    stream=stream_map.stream_alias,
                    record=mapped,
                    time_extracted=self._runtime.now(),
                )

    def _write_record_message(self, record: dict[str, Any]) -> None:
        """Write RECORD lines.

        Raises:
            ContractError: the event is nested more deeply than the SDK can walk.
        """
        event_id = record["id"]  # a stream map may remove it
        try:
            super()._write_record_message(record)
        except RecursionError:
            raise service_error("AE-NESTING", details=f"event {sanitize(event_id)}") from None


def _mapped(stream_map: StreamMap, record: dict[str, Any]) -> dict[str, Any] | None:
    """The record as a stream map or flattening changes it, None if it is filtered out.

    Raises:
        SettingsError: an expression of the stream map fails for the record.
    """
    if not isinstance(stream_map, CustomStreamMap):
        return stream_map.transform(record)
    try:
        return stream_map.transform(record)
    except (MappingError, RecursionError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {sanitize(str(error))}"
        raise SettingsError(
            [f"stream_maps fails at event {sanitize(str(record.get('id')))} ({reason})"],
            "AE-STREAM-MAPS",
        ) from error


def _drop_alarm_for_expected_errors(record: logging.LogRecord) -> bool:
    """Drop the SDK's "unhandled error" line for errors that are handled: they have their own."""
    expected = (
        AuditEventsError | MappingError | AbortedSyncFailedException | AbortedSyncPausedException
    )
    is_alarm = str(record.msg).startswith("An unhandled error occurred")
    return not (is_alarm and isinstance(sys.exc_info()[1], expected))
