"""Writes missing events into a file that a loader, or anything else, can load."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.outputs.whole_file import WholeFile
from tap_audit_events.config.settings import Settings
from tap_audit_events.events.exact_json import encode
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.events.schema import keys_of, schema_of
from tap_audit_events.events.stream_names import REPLICATION_KEY, STREAM

Lines: TypeAlias = Callable[[EventPage, Sequence[int]], Sequence[bytes]]
"""The lines for some events of a page."""


class SingerLines:
    """SCHEMA and RECORD messages as the tap writes them; no STATE, so bookmarks stay.

    Args:
        settings: say the shape of the records.
    """

    def __init__(self, settings: Settings) -> None:
        self._shapes: Mapping[str, RecordShape] = {
            each.organization_id: each.record_shape for each in settings.each()
        }
        self._shape = next(iter(self._shapes.values()))

    @property
    def head(self) -> bytes:
        """The SCHEMA message."""
        return encode(
            {
                "type": "SCHEMA",
                "stream": STREAM,
                "schema": schema_of(self._shape),
                "key_properties": keys_of(self._shape),
                "bookmark_properties": [REPLICATION_KEY],
            }
        )

    def __call__(self, page: EventPage, positions: Sequence[int]) -> Sequence[bytes]:
        shape = self._shapes[page.organization_id]
        begin = b'{"type":"RECORD","stream":%b,"record":' % encode(STREAM)
        end = b',"time_extracted":%b}' % encode(datetime.now(UTC))
        return [begin + bytes(shape.apply(page.raw[each])) + end for each in positions]


def own_bytes(page: EventPage, positions: Sequence[int]) -> Sequence[bytes]:
    """The events as the service sent them."""
    return [page.raw[each] for each in positions]


class Repair:
    """The file of missing events.

    Args:
        path: where it is written.
        format_: ``jsonl`` or ``singer``.
        settings: of the events.
    """

    def __init__(self, path: Path, format_: str, settings: Settings) -> None:
        self._file = WholeFile(path)
        self._lines: Lines = own_bytes
        if format_ == "singer":
            singer = SingerLines(settings)
            self._lines = singer
            self._file.write([singer.head])

    def write(self, page: EventPage, positions: Sequence[int]) -> None:
        """Write the events at some positions of a page."""
        if positions:
            self._file.write(self._lines(page, positions))

    def commit(self) -> None:
        """Put the file in its place."""
        self._file.commit()

    def close(self) -> None:
        """Remove the file, if it is not in its place."""
        self._file.close()
