"""The stream ``audit_events``: how the SDK sees it, and the way of an event through the parts."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from singer_sdk import Stream
from singer_sdk.exceptions import AbortedSyncFailedException, AbortedSyncPausedException
from singer_sdk.helpers.conform import TypeConformanceLevel
from singer_sdk.singerlib import StateMessage
from singer_sdk.singerlib.catalog import REPLICATION_FULL_TABLE, REPLICATION_INCREMENTAL

from tap_audit_events.client import Client
from tap_audit_events.errors import (
    AuditEventsError,
    OutputError,
    SettingsError,
    service_error,
    shown,
)
from tap_audit_events.events import Page, read_record
from tap_audit_events.export import export
from tap_audit_events.schema import PRIMARY_KEY, REPLICATION_KEY, SCHEMA, STREAM
from tap_audit_events.state import from_bookmark, to_bookmark, types_never_asked_for
from tap_audit_events.timestamps import Instant, instant_of, text_of
from tap_audit_events.watermark import Watermark
from tap_audit_events.windows import Window, run_window

if TYPE_CHECKING:
    from singer_sdk.singerlib import Catalog

    from tap_audit_events.tap import TapAuditEvents

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
        self._watermark = Watermark()
        self._in_hand = _InHand(Page((), (), ()), ())

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
        if self.replication_key not in {None, REPLICATION_KEY}:
            raise SettingsError(
                [f"The catalog's replication_key of {STREAM} must be {REPLICATION_KEY}"]
            )
        self.replication_key = REPLICATION_KEY
        if self.replication_method not in _METHODS:
            raise SettingsError(
                [f"The catalog's replication_method of {STREAM} must be {' or '.join(_METHODS)}"]
            )

    def get_records(self, context: object) -> Iterator[dict[str, Any]]:
        """The events of this run's range that were not delivered before.

        An event counts as delivered when whoever iterates asks for the next: by then the SDK has
        written it. So every STATE stands for records that stand before it.

        Raises:
            ServiceError: the range could not be read to its end.
            SettingsError: the bookmark does not fit this tap or this organization.
        """
        del context
        self._watermark = self._read_watermark()
        window = self._run_window()
        if window is None:
            return
        client = Client(self._tap.settings, wait=time.sleep, logger=self.logger)
        delivered = 0
        for asked, page in export([window], client.pages):
            self._in_hand = _InHand(page, _to_deliver(page, asked, self._watermark))
            yield from self._in_hand.records()
            delivered += self._in_hand.written
            self._checkpoint()
            if page.malformed:
                raise page.malformed
        self.logger.info(
            "Done: %d events in %d requests, %d of them retries; bookmark %s",
            delivered, client.traffic.requests, client.traffic.retries, self._bookmark,
        )  # fmt: skip

    @property
    def _bookmark(self) -> str:
        """The bookmark, to be shown."""
        bookmark = self._watermark.bookmark
        return "none" if bookmark is None else text_of(bookmark)

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
                ", ".join(map(shown, added)) or "the other types",
            )
        return from_bookmark(
            self.stream_state,
            organization_id=settings.organization_id,
            lookback_seconds=settings.lookback_seconds,
        )

    def _run_window(self) -> Window | None:
        settings = self._tap.settings
        window = run_window(
            start_date=settings.start_date,
            end_date=settings.end_date,
            bookmark=self._watermark.bookmark,
            lookback_seconds=settings.lookback_seconds,
            now=instant_of(datetime.now(UTC)),
        )
        if window is None:
            self.logger.warning(
                "Nothing to read: start_date or the bookmark (%s) lies after end_date or now",
                self._bookmark,
            )
        else:
            self.logger.info("Reading %s, bookmark %s", window, self._bookmark)
        return window

    def _checkpoint(self) -> None:
        """Write STATE for the events that are written, those of the page in hand included."""
        self._watermark.deliver(*self._in_hand.take_written())
        if self.replication_method == REPLICATION_INCREMENTAL:
            settings = self._tap.settings
            bookmark = to_bookmark(
                self._watermark,
                organization_id=settings.organization_id,
                action_types=settings.action_types,
            )
            self.stream_state.update(bookmark)
        self._write_state_message()

    # The SDK's own ways, where they would lose or repeat events. Each private name is listed, with
    # its reason, in docs/adr/0002-what-we-take-from-the-sdk.md.

    def get_replication_key_signpost(self, context: object = None) -> None:
        """No signpost: it would go into STATE, and the bookmark is exact without it."""
        del context

    def get_batch_config(self, config: object) -> None:
        """No BATCH messages: they would be written beside the STATE that stands for them."""
        del config

    @property
    def emit_activate_version_messages(self) -> bool:
        """Never: a target would delete the events that the service no longer shows."""
        return False

    def _sync_records(self, context: Any = None, *, write_messages: bool = True) -> Any:
        """The SDK's record path; where it ends early, STATE stands for what it has written."""
        try:
            yield from super()._sync_records(context, write_messages=write_messages)
        except OutputError:
            raise
        except Exception:
            self._checkpoint()
            raise

    def _write_starting_replication_value(self, context: object) -> None:
        """The bookmark is read from the state as it is; the SDK would compare it inexactly."""

    def _increment_stream_state(self, latest_record: object, *, context: object = None) -> None:
        """The bookmark moves with pages; the SDK would compare texts instead of instants."""

    def _write_state_message(self) -> None:
        """Write STATE, also an unchanged one, unless the last line is a STATE already."""
        if not self._tap.message_writer.ends_with_state:
            self._tap.write_message(StateMessage(value=self.tap_state))

    def _write_record_message(self, record: dict[str, Any]) -> None:
        """Write RECORD lines.

        Raises:
            ContractError: the event is nested deeper than the SDK can walk.
        """
        try:
            super()._write_record_message(record)
        except RecursionError:
            raise service_error("nesting", details=f"event {shown(record['id'])}") from None


class _InHand:
    """A page whose events are being written, and how many of them are.

    Args:
        page: the page.
        positions: which of its events are to be written.
    """

    def __init__(self, page: Page, positions: Sequence[int]) -> None:
        self._page = page
        self._positions = positions
        self._taken = 0
        self.written = 0

    def records(self) -> Iterator[dict[str, Any]]:
        """The records; each counts as written when the next one is asked for."""
        for position in self._positions:
            yield read_record(self._page.texts[position])
            self.written += 1

    def take_written(self) -> tuple[list[str], list[Instant]]:
        """The ids and instants of what has been written since this was asked last."""
        positions = self._positions[self._taken : self.written]
        self._taken = self.written
        ids, instants = self._page.ids, self._page.instants
        return [ids[each] for each in positions], [instants[each] for each in positions]


def _to_deliver(page: Page, window: Window, watermark: Watermark) -> Sequence[int]:
    """The positions of a page's events that lie in the window and were not delivered before."""
    positions = watermark.fresh(page.ids)
    if window.holds_all(page.instants):
        return positions
    return [position for position in positions if window.holds(page.instants[position])]


def _without_alarm_for_expected_errors(record: logging.LogRecord) -> bool:
    """Drop the SDK's "unhandled error" line for errors that are handled: they have their own."""
    expected = AuditEventsError | AbortedSyncFailedException | AbortedSyncPausedException
    is_alarm = str(record.msg).startswith("An unhandled error occurred")
    return not (is_alarm and isinstance(sys.exc_info()[1], expected))
