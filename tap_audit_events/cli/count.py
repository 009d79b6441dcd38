"""The subcommand `count`: reads every event of a range, and keeps only the counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.options import Common
from tap_audit_events.cli.terminal.csv_line import csv_line
from tap_audit_events.cli.terminal.process import write_stdout
from tap_audit_events.cli.terminal.reporter import Reporter
from tap_audit_events.events.exact_json import decode_with
from tap_audit_events.events.instants import instant_of

MAX_GROUPS: Final = 200_000
MAX_BYTES: Final = 64_000_000
"""The limit for the names of all groups: events of further groups are counted together."""

OTHERS: Final = "(all others)"
_DAY: Final = len("2026-01-31")
_ABSENT: Final = msgspec.Raw(b"null")

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "day": ("day",),
    "action": ("action_type",),
    "actor": ("actor_type", "actor_id"),
}
"""The columns that name a group, for each value of ``--by``."""


class _Named(msgspec.Struct, frozen=True, gc=False):
    type: msgspec.Raw = _ABSENT
    id: msgspec.Raw = _ABSENT


class _Action(msgspec.Struct, gc=False):
    action: _Named = _Named()


class _Actor(msgspec.Struct, gc=False):
    actor: _Named = _Named()


_decode_action = msgspec.json.Decoder(_Action).decode
_decode_actor = msgspec.json.Decoder(_Actor).decode


class Counts:
    """Counts events by group: a bounded number of groups one by one, all others together.

    Args:
        by: key of `COLUMNS`.
        most_groups: maximum number of groups.
        most_bytes: maximum number of bytes of the names of all groups.
    """

    def __init__(
        self, by: str, *, most_groups: int = MAX_GROUPS, most_bytes: int = MAX_BYTES
    ) -> None:
        self._by = by
        self._names: Callable[[EventPage], Iterable[tuple[bytes, ...]]] = _NAMES[by]
        self._most_groups = most_groups
        self._bytes_left = most_bytes
        self._counts: dict[tuple[bytes, ...], int] = {}
        self.others = 0

    def add(self, page: EventPage) -> None:
        """Count the events of a page.

        Raises:
            ContractError: an event is nested too deeply to be read.
        """
        counts = self._counts
        for name in self._names(page):
            if name in counts:
                counts[name] += 1
            elif self._has_room(name):
                counts[name] = 1
            else:
                self.others += 1

    def rows(self) -> list[dict[str, Any]]:
        """A row for each group, those with most events first, but days in their order."""
        columns = COLUMNS[self._by]
        merged: dict[tuple[str | None, ...], int] = {}
        for name, events in self._counts.items():  # the same text may be written in several ways
            texts = tuple(map(_text, name))
            merged[texts] = merged.get(texts, 0) + events
        rows = sorted(merged.items(), key=_by_day if self._by == "day" else _by_events)
        if self.others:
            rows.append(((OTHERS, *[None] * (len(columns) - 1)), self.others))
        return [dict(zip(columns, name, strict=True)) | {"events": n} for name, n in rows]

    def _has_room(self, name: tuple[bytes, ...]) -> bool:
        size = sum(map(len, name))
        if len(self._counts) >= self._most_groups or size > self._bytes_left:
            return False
        self._bytes_left -= size
        return True


def run_count(by: str, format_: str, common: Common) -> None:
    """Print how many events there are, by day, action type or actor.

    Raises:
        AuditEventsError: not all events could be read; nothing is printed then.
    """
    settings = common.settings()
    counts = Counts(by)
    reporter = Reporter(settings.end_date or instant_of(datetime.now(UTC)), quiet=common.quiet)
    with closing(reporter), closing(common.events_of(settings).pages()) as pages:
        for page in pages:
            counts.add(page)
            reporter.page(page)
    if counts.others:
        common.logger.warning(
            "There are more groups than can be kept in memory: %d events are counted as %s",
            counts.others, OTHERS,
        )  # fmt: skip
    text = TABLE_FORMATS[format_]([*COLUMNS[by], "events"], counts.rows())
    write_stdout(text.encode())
    reporter.done("Counted")


# Names of groups, as the events' own JSON: so a value of any type is accepted


def _days(page: EventPage) -> Iterable[tuple[bytes, ...]]:
    return ((b'"%b"' % instant[:_DAY].encode(),) for instant in page.instants)


def _actions(page: EventPage) -> Iterable[tuple[bytes, ...]]:
    for text in page.raw:
        try:
            yield (bytes(decode_with(_decode_action, text).action.type),)
        except msgspec.ValidationError:
            yield (b"null",)


def _actors(page: EventPage) -> Iterable[tuple[bytes, ...]]:
    for text in page.raw:
        try:
            actor = decode_with(_decode_actor, text).actor
            yield bytes(actor.type), bytes(actor.id)
        except msgspec.ValidationError:
            yield b"null", b"null"


_NAMES: Final = {"day": _days, "action": _actions, "actor": _actors}


def _text(name: bytes) -> str | None:
    value = json.loads(name, parse_int=str)  # Python refuses integers of more than 4,300 digits
    return value if isinstance(value, str | None) else name.decode()


def _by_day(row: tuple[tuple[str | None, ...], int]) -> Any:
    return row[0]


def _by_events(row: tuple[tuple[str | None, ...], int]) -> Any:
    return -row[1], [text or "" for text in row[0]]


# What is printed


def _as_table(columns: list[str], rows: list[dict[str, Any]]) -> str:
    numbers = {"events"} | {
        name for row in rows for name, value in row.items() if isinstance(value, int)
    }
    lines = [[_shown(row[name]) for name in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *lines, strict=True)]
    aligned = [
        "  ".join(
            text.rjust(width) if name in numbers else text.ljust(width)
            for name, text, width in zip(columns, line, widths, strict=True)
        )
        for line in [columns, *lines]
    ]
    return "".join(f"{line}\n" for line in aligned)


def _shown(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    text = "" if value is None else str(value)
    return text if text.isprintable() else repr(text)  # a name must not control the terminal


def _as_csv(columns: list[str], rows: list[dict[str, Any]]) -> str:
    lines = [columns, *([row[name] for name in columns] for row in rows)]
    return "".join(f"{csv_line(line)}\n" for line in lines)


def _as_json(columns: list[str], rows: list[dict[str, Any]]) -> str:
    del columns
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


TABLE_FORMATS: Final[Mapping[str, Callable[[list[str], list[dict[str, Any]]], str]]] = {
    "table": _as_table,
    "csv": _as_csv,
    "json": _as_json,
}
"""How to print rows, for each value of ``--format``."""
