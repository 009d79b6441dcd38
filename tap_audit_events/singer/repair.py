"""The messages that the tap would write for some events, without reading them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, cast

from singer_sdk.mapper import RemoveRecordTransform

from tap_audit_events.config.singer_shapes import check_catalog
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.events.exact_json import JsonText
from tap_audit_events.events.schema import leaves_of
from tap_audit_events.events.stream_names import ORGANIZATION_KEY, REPLICATION_KEY, STREAM
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.stream import AuditEventsStream
from tap_audit_events.singer.tap import TapAuditEvents

_COMPARED: Final = ("id", REPLICATION_KEY)


class TapMessages:
    """SCHEMA, and the RECORD of each event, as a run of the tap with the same settings writes them.

    There is no STATE, so no bookmark changes.

    Args:
        config: the settings of the tap.
        catalog: the catalog of the tap, None if it runs without one.
        runtime: its clock and its signals.
        write: is called with whole lines.

    Raises:
        SettingsError: the settings or the catalog cannot be used, the catalog does not select the
            stream, or stream maps change what identifies an event.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        catalog: dict[str, Any] | None,
        *,
        runtime: Runtime,
        write: Callable[[bytes], None],
    ) -> None:
        compared = (*_COMPARED, *([ORGANIZATION_KEY] if config.get("organizations") else []))
        if changed := sorted(_changed(compared, config.get("stream_maps"))):
            names = ", ".join(changed)
            problem = f"stream_maps changes {names}, by which events are compared"
            raise SettingsError([f"{problem}: a repair is not possible"], "AE-STREAM-MAPS")
        tap = TapAuditEvents(
            config=dict(config),
            catalog=None if catalog is None else check_catalog(catalog),
            runtime=runtime,
            message_writer=_LineWriter(write),
        )
        self._stream = cast("AuditEventsStream", tap.streams[STREAM])
        if not self._stream.selected:
            problem = f"The catalog does not select {STREAM}: give the one with which the tap runs"
            raise SettingsError([problem], "AE-CATALOG")

    def fields(self) -> Iterator[list[tuple[str, ...]]]:
        """The fields of the records, with those inside objects: of each stream that is written."""
        for each in self._stream.stream_maps:
            if not isinstance(each, RemoveRecordTransform):
                yield list(leaves_of(each.transformed_schema))

    def write_schema(self) -> None:
        """Write the SCHEMA of each stream."""
        self._stream.write_schema()

    def write(self, texts: Sequence[JsonText]) -> None:
        """Write the records of events, whose JSON texts are in the shape of the settings.

        Raises:
            SettingsError: an expression of ``stream_maps`` fails.
            ContractError: an event is nested too deeply.
        """
        self._stream.write_events(texts)


class _LineWriter(MessageWriter):
    """Passes lines on, instead of writing them to stdout."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._pass_on = write

    def _write(self, *pieces: bytes, flush: bool = False) -> None:
        del flush
        self._pass_on(b"".join(pieces))


def _changed(names: Sequence[str], stream_maps: object) -> Iterator[str]:
    """The fields of some names that an expression computes; copies of the stream may do so."""
    for stream, each in (stream_maps if isinstance(stream_maps, dict) else {}).items():
        if isinstance(each, dict) and "__source__" not in each and fnmatchcase(STREAM, stream):
            yield from (name for name in names if each.get(name, name) != name)
