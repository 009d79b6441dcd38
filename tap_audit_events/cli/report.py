"""The subcommand `report`: a calendar of a year, from the loaded tables."""

# ruff: noqa: S608 - names are quoted

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from tap_audit_events.cli.loaded.columns import TimeColumn, find_columns, quoted
from tap_audit_events.cli.loaded.database import Database
from tap_audit_events.cli.loaded.row import instants_of
from tap_audit_events.cli.loaded.sources import open_database
from tap_audit_events.cli.outputs.durable import unusable
from tap_audit_events.cli.outputs.whole_file import WholeFile
from tap_audit_events.cli.proof.calendar_data import Calendar, Span, find_gaps, year_span
from tap_audit_events.cli.terminal.process import write_stderr
from tap_audit_events.cli.terminal.signals import interrupting
from tap_audit_events.errors.exceptions import OutputError, sanitize
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.stream_names import COVERAGE_STREAM, STREAM
from tap_audit_events.extraction.shutdown import Stop

_ALL_ACTION_TYPES: Final = (None, "", "[]", "{}")
"""An empty array as text, in each of the ways in which loaders store arrays."""


def run_report(source: str, year: int, to: str, schema: str | None, stop: Stop) -> None:
    """Draw the calendar of a year.

    Raises:
        OutputError: the tables cannot be read, or the picture cannot be written.
        SettingsError: a library is not installed, `source` is not a database, or `to` cannot be
            used.
        StoppedError: a signal asked the run to stop.
    """
    from tap_audit_events.cli.proof.calendar_picture import html_page, svg_picture  # noqa: PLC0415 - an extra

    draw = {".svg": svg_picture, ".html": html_page}.get(Path(to).suffix)
    if draw is None:
        raise unusable(
            f"--to {sanitize(to)} has no known format: end it with a name and .svg or .html"
        )
    with interrupting(stop), open_database(source, "--from") as database:
        calendar = read_calendar(database, year, schema, datetime.now(UTC))
    with closing(WholeFile(Path(to))) as file:
        file.write([draw(calendar).encode()])
        file.commit()
    write_stderr(f"Written to {to}: {summary(calendar)}")


def summary(calendar: Calendar) -> str:
    """The calendar in one sentence."""
    gaps = len(calendar.gaps)
    missing = f"{gaps} gaps" if gaps != 1 else "1 gap"
    events = f"{sum(calendar.events.values()):,} events in {calendar.year}, {missing}"
    return f"{events}; {note}" if (note := calendar.note) else events


def read_calendar(database: Database, year: int, schema: str | None, now: datetime) -> Calendar:
    """The calendar of a year, from the tables of both streams, without gaps after now.

    Raises:
        OutputError: they cannot be read.
    """
    prefix = f"{schema}." if schema else ""
    start, end = year_until_now = year_span(year, now.astimezone(UTC).replace(tzinfo=None))
    covered: dict[str, list[Span]] = {}
    limited = 0
    for organization, span, is_limited in _coverage(database, f"{prefix}{COVERAGE_STREAM}"):
        covered.setdefault(organization, []).append(span)
        limited += is_limited and span[0] < end and span[1] > start
    return Calendar(
        year=year,
        events=_events(database, f"{prefix}{STREAM}", year),
        gaps=find_gaps(covered, year_until_now),
        until=year_until_now[1],
        organizations=len(covered),
        limited_records=limited,
    )


def _events(database: Database, table: str, year: int) -> dict[date, int]:
    columns = find_columns(database.types(table), f"{database.name}, table {sanitize(table)}")
    day = f"substr({database.time_as_text(columns.time)}, 1, 10)"
    sql = f"SELECT {day} AS day, count(*) FROM {quoted(table)} GROUP BY 1"
    days = (row for batch in database.query(sql) for row in batch)
    found = ((_date(text), count) for text, count in days)
    return {each: count for each, count in found if each is not None and each.year == year}


def _coverage(database: Database, table: str) -> Iterator[tuple[str, Span, bool]]:
    """Each record's organization, its time span, and whether it covers only some action types."""
    try:
        types = database.types(table)
    except OutputError as error:
        error.add_note(
            f"A report needs the table of the stream {COVERAGE_STREAM}, which is off by default."
        )
        raise
    times = [
        database.time_as_text(TimeColumn(name, types.get(name, "").lower()))
        for name in ("covered_from", "covered_until")
    ]
    action_types = "CAST(action_types AS VARCHAR)" if "action_types" in types else "NULL"
    sql = f"SELECT organization_id, {action_types}, {', '.join(times)} FROM {quoted(table)}"
    for batch in database.query(sql):
        for organization, only, *texts in batch:
            start, end = instants_of(texts)
            if start is not None and end is not None:
                is_limited = only not in _ALL_ACTION_TYPES
                yield str(organization).lower(), (_moment(start), _moment(end)), is_limited


def _moment(instant: Instant) -> datetime:
    return datetime.fromisoformat(instant[:26])


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text or "")
    except ValueError:
        return None
