"""The subcommand `count`: reads every event of a range, and keeps only the counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.options import Common
from tap_audit_events.cli.selection import matching
from tap_audit_events.cli.terminal.process import write_stdout
from tap_audit_events.cli.terminal.reporter import Reporter
from tap_audit_events.cli.terminal.tables import TABLE_FORMATS
from tap_audit_events.events.event_filter import EventFilter
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


class _Event(msgspec.Struct, gc=False):
    action: msgspec.Raw = _ABSENT
    actor: msgspec.Raw = _ABSENT


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_named = msgspec.json.Decoder(_Named).decode


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
        for name in _names(page, self._by):
            if name in counts:
                counts[name] += 1
            elif self._has_room(name):
                counts[name] = 1
            else:
                self.others += 1

    def rows(self) -> list[dict[str, Any]]:
        """A row for each group, those with most events first, but days in their order."""
        merged: Counter[tuple[str | None, ...]] = Counter()
        for name, events in self._counts.items():  # the same text may be written in several ways
            merged[tuple(map(_text, name))] += events
        rows = sorted(merged.items(), key=lambda row: [text or "" for text in row[0]])
        if self._by != "day":
            rows.sort(key=lambda row: -row[1])
        if self.others:
            rows.append(((OTHERS, None), self.others))
        return [
            dict(zip(COLUMNS[self._by], name, strict=False)) | {"events": n} for name, n in rows
        ]

    def _has_room(self, name: tuple[bytes, ...]) -> bool:
        size = sum(map(len, name))
        if len(self._counts) >= self._most_groups or size > self._bytes_left:
            return False
        self._bytes_left -= size
        return True


def run_count(by: str, format_: str, filters: EventFilter, common: Common) -> None:
    """Print how many events there are, by day, action type or actor.

    Raises:
        AuditEventsError: not all events could be read; nothing is printed then.
    """
    settings = common.settings()
    counts = Counts(by)
    reporter = Reporter(settings.end_date or instant_of(datetime.now(UTC)), quiet=common.quiet)
    with closing(reporter), closing(common.events_of(settings).pages()) as pages:
        for page in pages:
            chosen = matching(page, filters)
            counts.add(chosen)
            reporter.page(page, chosen)
    if counts.others:
        common.logger.warning(
            "There are more groups than can be kept in memory: %d events are counted as %s",
            counts.others, OTHERS,
        )  # fmt: skip
    text = TABLE_FORMATS[format_]([*COLUMNS[by], "events"], counts.rows())
    write_stdout(text.encode())
    reporter.done("Counted")


def _names(page: EventPage, by: str) -> Iterator[tuple[bytes, ...]]:
    """The group of each event, as the event's own JSON, so that a value may have any type."""
    if by == "day":
        yield from ((b'"%b"' % instant[:_DAY].encode(),) for instant in page.instants)
        return
    fields = [column.removeprefix(f"{by}_") for column in COLUMNS[by]]
    for text in page.raw:
        try:
            named = decode_with(_decode_named, getattr(decode_with(_decode_event, text), by))
            yield tuple(bytes(getattr(named, field)) for field in fields)
        except msgspec.ValidationError:
            yield (b"null",) * len(fields)


def _text(name: bytes) -> str | None:
    value = json.loads(name, parse_int=str)  # Python refuses integers of more than 4,300 digits
    return value if isinstance(value, str | None) else name.decode()
