"""Writes missing events into a file, as Singer messages or JSON Lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.outputs.whole_file import WholeFile
from tap_audit_events.config.settings import Settings
from tap_audit_events.events.exact_json import encode
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.events.schema import keys_of, schema_of
from tap_audit_events.events.stream_names import REPLICATION_KEY, STREAM


class Repair:
    """Writes the missing events.

    The Singer messages are SCHEMA and RECORD, as the tap writes them. There is no STATE, so no
    bookmark changes.

    Args:
        file: where they are written; the caller commits it.
        format_: ``jsonl`` or ``singer``.
        settings: decide the shape of the records.
    """

    def __init__(self, file: WholeFile, format_: str, settings: Settings) -> None:
        self._file = file
        self._is_singer = format_ == "singer"
        self._shape = settings.record_shape
        if self._is_singer:
            self._file.write([_schema_message(self._shape)])

    def write(self, page: EventPage, positions: Sequence[int]) -> None:
        """Write the events at some positions of a page."""
        lines = [page.raw[each] for each in positions]
        if self._is_singer:
            shape = self._shape
            if shape.organization_id is not None:
                shape = replace(shape, organization_id=page.organization_id)
            lines = _record_messages(lines, shape)
        self._file.write(lines)


def _schema_message(shape: RecordShape) -> bytes:
    return encode(
        {
            "type": "SCHEMA",
            "stream": STREAM,
            "schema": schema_of(shape),
            "key_properties": keys_of(shape),
            "bookmark_properties": [REPLICATION_KEY],
        }
    )


def _record_messages(texts: Sequence[bytes], shape: RecordShape) -> list[bytes]:
    begin = b'{"type":"RECORD","stream":%b,"record":' % encode(STREAM)
    end = b',"time_extracted":%b}' % encode(datetime.now(UTC))
    return [begin + bytes(shape.apply(text)) + end for text in texts]
