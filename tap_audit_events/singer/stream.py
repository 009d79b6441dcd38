"""The stream ``audit_events``: how the SDK sees it, and the way of an event through the parts."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from singer_sdk import Stream
from singer_sdk.exceptions import (
    AbortedSyncFailedException,
    AbortedSyncPausedException,
    MappingError,
)
from singer_sdk.helpers.conform import TypeConformanceLevel
from singer_sdk.mapper import SameRecordTransform
from singer_sdk.metrics import Counter
from singer_sdk.singerlib import RecordMessage, StateMessage
from singer_sdk.singerlib.catalog import REPLICATION_FULL_TABLE, REPLICATION_INCREMENTAL

from tap_audit_events import PRIMARY_KEY, REPLICATION_KEY, STREAM
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OutputError,
    SettingsError,
    sanitize,
    service_error,
)
from tap_audit_events.events.instants import instant_of
from tap_audit_events.events.page import Envelope, Page, read_page
from tap_audit_events.events.schema import SCHEMA
from tap_audit_events.events.window import AsksAhead, Window, run_window
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.plan import Export
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.extraction.window_reader import Pages
from tap_audit_events.reporting.summary import Report, bookmark_shown
from tap_audit_events.service.client import Client
from tap_audit_events.service.rate_limiter import Gate
from tap_audit_events.singer.catalog import Path, deselected, leave_out
from tap_audit_events.singer.state import from_bookmark, to_bookmark, types_never_asked_for

if TYPE_CHECKING:
    from singer_sdk.singerlib import Catalog

    from tap_audit_events.singer.tap import TapAuditEvents

_METHODS = (REPLICATION_INCREMENTAL, REPLICATION_FULL_TABLE)


class AuditEventsStream(Stream):
    """The audit events of one organization, oldest first, each once."""

    TYPE_CONFORMANCE_LEVEL = TypeConformanceLevel.NONE  # a field the schema lacks leaves as it came
    STATE_MSG_FREQUENCY = sys.maxsize  # STATE is written at page ends, by get_records

    _tap: TapAuditEvents

    def __init__(self, tap: TapAuditEvents) -> None:
        super().__init__(tap, schema=SCHEMA, name=STREAM)
        self.primary_keys = (PRIMARY_KEY,)
        self.replication_key = REPLICATION_KEY
        self.logger.addFilter(_without_alarm_for_expected_errors)
        self._delivery = Delivery(Watermark())
        self._left_out: list[Path] | None = None
        self._report: Report | None = None

    @property
    def is_sorted(self) -> bool:
        """Pages are asked for in ascending order."""
        return True

    def apply_catalog(self, catalog: Catalog) -> None:
        """Take selection, schema and replication method from a catalog.

        Raises:
            SettingsError: it asks for another replication method or key than there is.
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

        An event counts as delivered when whoever iterates asks for the next: by then the SDK has
        written it. So every STATE stands for records that stand before it.

        Raises:
            ServiceError: the range could not be read to its end.
            SettingsError: the bookmark does not fit this tap or this organization.
            StoppedError: a signal asked to stop.
        """
        del context
        with closing(self._pages()) as pages:
            for delivery in pages:
                for record in delivery.records():
                    self._tap.stop.check()
                    yield record

    def _pages(self, *, apart: bool = False) -> Generator[Delivery, None, None]:
        """Each page of this run's range in hand, to be written; STATE follows where it is due.

        Args:
            apart: whether this is not the main thread, and may wait for the service.
        """
        tap = self._tap
        delivery = self._delivery = Delivery(self._read_watermark())
        window = self._run_window(delivery.watermark)
        if window is None:
            return
        gate = tap.new_gate()
        report = self._report = self._new_report(window, gate)
        export = self._export(window, gate, report)
        workers = tap.new_workers(export, may_wait=apart)
        idle = _nothing if apart else report.tick
        try:
            for asked, page, in_order in workers.pages(idle):
                with tap.stop.in_hand:
                    tap.stop.check()
                    delivery.begin(page, asked, in_order=in_order)
                    yield delivery
                    delivery.take_in()
                    report.page(page)
                    delivery.let_go()
                    del page  # the next one then takes its place in memory
                    if tap.message_writer.state_is_due:
                        self._write_checkpoint()
        finally:
            gate.close()
        delivery.watermark.settle()
        self._keep_bookmark()
        report.done(export.windows)

    def _new_report(self, window: Window, gate: Gate) -> Report:
        return Report(
            window,
            self._delivery,
            gate,
            self._tap.settings,
            logger=self.logger,
            now=self._tap.now,
            keeps_bookmark=self.replication_method == REPLICATION_INCREMENTAL,
        )

    def _export(self, window: Window, gate: Gate, report: Report) -> Export:
        """The requests and pages of this run; one page of one request where a few events do."""
        settings = self._tap.settings
        client = Client(settings, self._tap.new_session, gate=gate, logger=self.logger)
        is_probe = self.ABORT_AT_RECORD_COUNT is not None
        return Export(
            window,
            partial(pages_of, client),
            page_size=settings.page_size,
            concurrency=1 if is_probe else settings.concurrency,
            pages_ahead=1 if is_probe else None,
            restarting=report.restarting,
        )

    # What a run begins with

    def _read_watermark(self) -> Watermark:
        """What earlier runs delivered; nothing where the whole table is asked for."""
        settings = self._tap.settings
        if self.replication_method == REPLICATION_FULL_TABLE:
            return Watermark(lookback_seconds=settings.lookback_seconds)
        added = types_never_asked_for(self.stream_state, settings.action_types)
        if added is not None:
            self.logger.warning(
                "action_types was widened since the bookmark was written: older events of %s were"
                " never asked for. To have them, run once without state.",
                ", ".join(map(sanitize, added)) or "the other types",
            )
        return from_bookmark(
            self.stream_state,
            organization_id=settings.organization_id,
            lookback_seconds=settings.lookback_seconds,
            warn=self.logger.warning,
        )

    def _run_window(self, watermark: Watermark) -> Window | None:
        settings = self._tap.settings
        window = run_window(
            start_date=settings.start_date,
            end_date=settings.end_date,
            bookmark=watermark.bookmark,
            lookback_seconds=settings.lookback_seconds,
            now=instant_of(self._tap.now()),
            ids_from=watermark.ids_from,
        )
        if window is None:
            self.logger.warning(
                "Nothing to read: start_date or the bookmark (%s) lies after end_date or now",
                bookmark_shown(watermark),
            )
        return window

    # STATE

    def _write_checkpoint(self) -> None:
        """Write STATE for the events that are written."""
        self._keep_bookmark()
        self._write_state_message()

    def _keep_bookmark(self) -> None:
        """Put the watermark into the state that is written next."""
        if self.replication_method == REPLICATION_INCREMENTAL:
            settings = self._tap.settings
            bookmark = to_bookmark(
                self._delivery.watermark,
                organization_id=settings.organization_id,
                action_types=settings.action_types,
            )
            self.stream_state.update(bookmark)

    # The SDK's own ways, where they would lose or repeat events. Each private name is listed, with
    # its reason, in docs/adr/0002-what-is-taken-from-inside-the-sdk.md.

    def get_replication_key_signpost(self, context: object = None) -> None:
        """No signpost: it would go into STATE, and the bookmark is exact without it."""
        del context

    def get_batch_config(self, config: object) -> None:
        """No BATCH messages: they would be written beside the STATE that stands for them."""
        del config

    def get_record_counter(self, **options: Any) -> Counter:
        """One METRIC line at the end: the SDK's would count from zero again each minute."""
        return super().get_record_counter(**{"log_interval": inf, **options})

    @property
    def emit_activate_version_messages(self) -> bool:
        """Never: a target would delete the events that the service no longer shows."""
        return False

    def _sync_records(self, context: Any = None, *, write_messages: bool = True) -> Any:
        """Write the records by one of two lanes; where it ends early, STATE stands for them."""
        try:
            if write_messages and self._is_verbatim:
                self._write_pages()
            else:
                yield from super()._sync_records(context, write_messages=write_messages)
        except OutputError:
            raise
        except Exception:
            self._delivery.take_in()
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
        with self.get_record_counter() as counter, self.get_sync_timer():
            self._tap.run_apart(partial(self._write_each_page, counter), self._tick)
        self._write_state_message()

    def _write_each_page(self, counter: Counter) -> None:
        with closing(self._pages(apart=True)) as pages:
            for delivery in pages:
                counter.increment(self._write_page(delivery))

    def _write_page(self, delivery: Delivery) -> int:
        """Write the page in hand; say how many records that were."""
        texts = delivery.texts()
        self._tap.message_writer.write_records(self.name, texts, self._tap.now())
        delivery.all_written()
        return len(texts)

    def _tick(self) -> None:
        """Time has gone by, and no page came."""
        if self._report is not None:
            self._report.tick()

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
            mapped = stream_map.transform(record)
            if mapped is not None:
                yield RecordMessage(
                    stream=stream_map.stream_alias, record=mapped, time_extracted=self._tap.now()
                )

    def _write_record_message(self, record: dict[str, Any]) -> None:
        """Write RECORD lines.

        Raises:
            ContractError: the event is nested deeper than the SDK can walk.
            SettingsError: a stream map cannot be applied to it.
        """
        event_id = record["id"]  # the SDK takes out of the record what is not selected
        try:
            super()._write_record_message(record)
        except RecursionError:
            raise service_error("AE-NESTING", details=f"event {sanitize(event_id)}") from None
        except (AuditEventsError, MappingError):
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {sanitize(str(error))}"
            raise SettingsError(
                [f"stream_maps fails at event {sanitize(event_id)} ({what})"], "AE-STREAM-MAPS"
            ) from error


def pages_of(client: Client, asks_ahead: AsksAhead, window: Window) -> Pages:
    """The pages of a window, each asked for when it is asked for here, or just before.

    A page is not kept once it was handed out.
    """

    def read(envelope: Envelope) -> Page:
        page = read_page(envelope)
        if page.malformed:
            page.malformed.window = str(window)
        return page

    with closing(client.envelopes(window, asks_ahead)) as envelopes:
        yield from map(read, envelopes)


def _nothing() -> None:
    """The main thread looks around where another one delivers."""


def _without_alarm_for_expected_errors(record: logging.LogRecord) -> bool:
    """Drop the SDK's "unhandled error" line for errors that are handled: they have their own."""
    expected = (
        AuditEventsError | MappingError | AbortedSyncFailedException | AbortedSyncPausedException
    )
    is_alarm = str(record.msg).startswith("An unhandled error occurred")
    return not (is_alarm and isinstance(sys.exc_info()[1], expected))
