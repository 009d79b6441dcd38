"""The SDK's stream without what would lose, repeat or change events.

docs/adr/0002-what-is-taken-from-inside-the-sdk.md lists each private name with its reason, except
attributes of instances.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Generator, Iterator
from datetime import datetime
from functools import cached_property
from typing import Any

from singer_sdk import Stream, Tap
from singer_sdk.exceptions import AbortedSyncFailedException, AbortedSyncPausedException
from singer_sdk.helpers._catalog import pop_deselected_record_properties
from singer_sdk.mapper import CustomStreamMap, SameRecordTransform, StreamMap
from singer_sdk.singerlib import Catalog, RecordMessage, StateMessage
from singer_sdk.singerlib.catalog import REPLICATION_FULL_TABLE, REPLICATION_INCREMENTAL

from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    SettingsError,
    sanitize,
    service_error,
)
from tap_audit_events.errors.redacted_output import redact_record
from tap_audit_events.events.exact_json import encode

_METHODS = (REPLICATION_INCREMENTAL, REPLICATION_FULL_TABLE)


class ExactStream(Stream):
    """A stream whose records and bookmark are exact; ``time_extracted`` is what `now` returns.

    Attributes:
        records_written: RECORD messages, including those of copies by stream maps.
        events_left_out: events of which stream maps wrote no record.
    """

    def __init__(
        self, tap: Tap, *, schema: dict[str, Any], name: str, now: Callable[[], datetime]
    ) -> None:
        super().__init__(tap, schema=schema, name=name)
        # Of the logger itself: from 0.55 on, `self.logger` is an adapter, which has no filters.
        logger = tap.logger.getChild(name)
        logger.addFilter(_drop_alarm_for_expected_errors)
        logger.addFilter(redact_record)
        self.records_written = self.events_left_out = 0
        self._now = now

    def apply_catalog(self, catalog: Catalog) -> None:
        """Take selection, schema, keys and replication method from a catalog.

        Raises:
            SettingsError: it names a key or a replication method that the stream does not have.
        """
        replication_key = self.replication_key
        super().apply_catalog(catalog)
        entry = catalog.get_stream(self.name)
        if not entry:
            return
        fields = entry.schema.properties or {}
        unknown = [key for key in entry.key_properties or () if key not in fields]
        if unknown:
            names = ", ".join(sanitize(key, 60) for key in unknown)
            raise _catalog_error(
                f"key_properties of {self.name} name fields that the stream does not have: {names}"
            )
        if self.replication_key and self.replication_key != replication_key:
            raise _catalog_error(f"replication_key of {self.name} must be {replication_key}")
        if self.replication_method not in _METHODS:
            raise _catalog_error(
                f"replication_method of {self.name} must be {' or '.join(_METHODS)}"
            )
        self.replication_key = replication_key

    @cached_property
    def _deselects(self) -> bool:
        """Whether the catalog deselects a field; to look for it in each record takes long."""
        return not all(self.mask.values())

    def get_replication_key_signpost(self, context: object = None) -> None:
        """No signpost: it would be written into STATE, and the bookmark is exact without it."""
        del context

    def get_batch_config(self, config: object) -> None:
        """No batches by the SDK, whose STATE covers records in files that are not complete.

        `BatchFiles` writes the batches.
        """
        del config

    def write_record(self, message: RecordMessage) -> None:
        """Write a record of the SDK lane."""
        self._tap.write_message(message)

    @property
    def emit_activate_version_messages(self) -> bool:
        """Never: a target would delete the events that the service no longer shows."""
        return False

    @property
    def partitions(self) -> None:
        """None: at the end the SDK would search the state for each organization in turn."""
        return

    @property
    def is_verbatim(self) -> bool:
        """Whether the SDK would write each record unchanged."""
        (stream_map, *more) = self.stream_maps
        return (
            type(stream_map) is SameRecordTransform
            and not more
            and not stream_map.flattening_enabled
            and not self._deselects
            and self.ABORT_AT_RECORD_COUNT is None
        )

    def get_records(self, context: object) -> Iterator[dict[str, Any]]:
        """No records: the SDK's loop writes none."""
        del context
        return iter(())

    def _sync_records(self, *_: object, **__: object) -> tuple[()]:  # type: ignore[override]
        """Nothing: the SDK's loop, which this replaces, would keep an inexact bookmark."""
        return ()

    def _write_state_message(self) -> None:
        """Write STATE, even if it is unchanged: it is always the last line."""
        self._tap.write_message(StateMessage(value=self.tap_state))

    def _generate_record_messages(
        self, record: dict[str, Any]
    ) -> Generator[RecordMessage, None, None]:
        """The RECORD of each stream map, without what is not selected."""
        if self._deselects:
            pop_deselected_record_properties(record, self.schema, self.mask)
        written_before = self.records_written
        for stream_map in self.stream_maps:
            mapped = _mapped(stream_map, record)
            if mapped is not None:
                yield RecordMessage(
                    stream=stream_map.stream_alias,
                    record=mapped,
                    time_extracted=self._now(),
                )
                self.records_written += 1
        self.events_left_out += self.records_written == written_before

    def _write_record_message(self, record: dict[str, Any]) -> None:
        """Write RECORD lines.

        Raises:
            ContractError: the event is nested too deeply for the SDK to walk.
            SettingsError: an expression of stream_maps fails.
        """
        event_id = record.get("id")  # a stream map may remove it
        try:
            # Created before the first is written: if one failed, no STATE would cover the others.
            for message in list(self._generate_record_messages(record)):
                self.write_record(message)
        except RecursionError:
            raise service_error("AE-NESTING", details=f"event {sanitize(event_id)}") from None


def _catalog_error(problem: str) -> SettingsError:
    return SettingsError([f"The catalog's {problem}"], "AE-CATALOG")


def _mapped(stream_map: StreamMap, record: dict[str, Any]) -> dict[str, Any] | None:
    """The record as a stream map or flattening changes it, None if it is filtered out.

    `SettingsError` if an expression fails for the record.
    """
    if not isinstance(stream_map, CustomStreamMap):
        return stream_map.transform(record)  # flattening alone
    event_id = record.get("id")  # the expression may remove it; a coverage record has none
    try:
        mapped = stream_map.transform(record)
        encode(mapped)  # fails if it has no JSON form, like a method or a complex number
    except RecursionError:
        raise
    except Exception as error:
        cause = error.__cause__ or error
        reason = f"{type(cause).__name__}: {sanitize(cause)}"
        failing = f"event {sanitize(event_id)}" if event_id else "a coverage record"
        raise SettingsError(
            [f"stream_maps fails at {failing} ({reason}): fix the expression"],
            "AE-STREAM-MAPS",
        ) from error
    return mapped


def _drop_alarm_for_expected_errors(record: logging.LogRecord) -> bool:
    """Drop the SDK's "unhandled error" line for expected errors, which are logged separately."""
    expected = AuditEventsError | AbortedSyncFailedException | AbortedSyncPausedException
    is_alarm = str(record.msg).startswith("An unhandled error occurred")
    return not (is_alarm and isinstance(sys.exc_info()[1], expected))
