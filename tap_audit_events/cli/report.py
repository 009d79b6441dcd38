"""The subcommand `report`: a calendar of a year, from the loaded tables."""

# ruff: noqa: S608 - names are quoted

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from tap_audit_events.cli.loaded.batches import Loaded, NoTableError, Range
from tap_audit_events.cli.loaded.columns import TimeColumn, find_columns, quoted
from tap_audit_events.cli.loaded.database import (
    TemporaryDatabase,
    query_errors,
    temporary_database,
)
from tap_audit_events.cli.loaded.sources import is_database, open_database, open_loaded
from tap_audit_events.cli.loaded.tables import Database
from tap_audit_events.cli.loaded.times import DAY, TIMES, position_of
from tap_audit_events.cli.proof.calendar import Calendar, Span, merged, year_span
from tap_audit_events.cli.proof.calendar_picture import html_page, svg_picture
from tap_audit_events.cli.terminal.process import write_stderr
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.stream_names import COVERAGE_STREAM, STREAM
from tap_audit_events.extraction.shutdown import Stop, interrupting
from tap_audit_events.outputs.durable import unusable
from tap_audit_events.outputs.whole_file import WholeFile
from tap_audit_events.reporting.progress import events_text

_DAYS: Final = (
    f"WITH {{source}}, {TIMES} SELECT {DAY}, count(*) FROM times"
    " WHERE microsecond BETWEEN ? AND ? GROUP BY 1"
)
_EMPTY_ARRAYS: Final = ("", "[]", "{}")
"""An empty array as text, in each of the ways in which loaders store arrays."""


def run_report(source: str, year: int, to: str, schema: str | None, stop: Stop) -> None:
    """Draw the calendar of a year.

    Raises:
        OutputError: the tables cannot be read, or the picture cannot be written.
        SettingsError: a library is not installed, or `to` cannot be used.
        StoppedError: a signal asked the run to stop.
    """
    draw = {".svg": svg_picture, ".html": html_page}.get(Path(to).suffix)
    if draw is None:
        raise unusable(
            f"--to {sanitize(to)} has no known format: end it with a name and .svg or .html"
        )
    now = datetime.now(UTC).replace(tzinfo=None)
    with temporary_database() as own, interrupting(stop):
        if is_database(source):
            with open_database(source, "--from", own) as database:
                calendar = read_calendar(database, year, schema, now)
        elif schema is not None:
            raise SettingsError(["--schema names a schema of a database: leave it out for a file"])
        else:
            with open_loaded(source, None, own, option="--from") as files:
                calendar = calendar_of_files(files, own, year, now)
    with closing(WholeFile(Path(to))) as file:
        file.write([draw(calendar).encode()])
        file.commit()
    write_stderr(f"Written to {to}: {summary(calendar)}")


def summary(calendar: Calendar) -> str:
    """The calendar in one sentence."""
    text = f"{events_text(sum(calendar.events.values()))} in {calendar.year}"
    if calendar.gaps is not None:
        gaps = len(calendar.gaps)
        text += f", {gaps} gaps" if gaps != 1 else ", 1 gap"
    return f"{text}; {note}" if (note := calendar.note) else text


def read_calendar(database: Database, year: int, schema: str | None, now: datetime) -> Calendar:
    """The calendar of a year, from the tables of both streams, without gaps after now.

    Without a table of coverage records, as in an export, gaps are not known.

    Raises:
        OutputError: a table cannot be read.
    """
    prefix = f"{schema}." if schema else ""
    within = year_span(year, now)
    events = _events(database, f"{prefix}{STREAM}", year)
    table = f"{prefix}{COVERAGE_STREAM}"
    try:
        types = database.types(table)
    except NoTableError:
        return Calendar(year, events, None, until=within[1])
    spans = _spans(database, table, types)
    organizations, limited = _counts(database, spans, within)
    gaps = merged(database.query(_gaps(spans, within))) if organizations else (within,)
    return Calendar(
        year=year,
        events=events,
        gaps=gaps if within[0] < within[1] else (),
        until=within[1],
        organizations=organizations,
        limited_records=limited,
    )


def calendar_of_files(files: Loaded, own: TemporaryDatabase, year: int, now: datetime) -> Calendar:
    """The calendar of a year, from the files of an export, which have no coverage records.

    Raises:
        OutputError: they cannot be read.
    """
    within = _range_of(year)
    bounds = [position_of(each)[0] for each in (within.start, within.end)]
    events: Counter[date] = Counter()
    for rows in files.batches(within):
        with query_errors(rows):
            found = own.execute(_DAYS, bounds, rows).fetchall()
        events.update({date.fromisoformat(day): count for day, count in found})
    return Calendar(year, events, None, until=year_span(year, now)[1])


def _events(database: Database, table: str, year: int) -> dict[date, int]:
    columns = find_columns(database.types(table), f"{database.name}, table {sanitize(table)}")
    day = f"substr({database.time_as_text(columns.time)}, 1, 10)"
    condition = database.condition(columns.time, _range_of(year))
    sql = f"SELECT {day} AS day, count(*) FROM {quoted(table)} WHERE {condition} GROUP BY 1"
    found = ((_date(text), count) for text, count in database.query(sql))
    return {each: count for each, count in found if each is not None and each.year == year}


def _spans(database: Database, table: str, types: Mapping[str, str]) -> str:
    """A query for each record's organization, time span, and whether only some types count."""
    times = [
        database.timestamp(TimeColumn(name, types.get(name, "").lower()))
        for name in ("covered_from", "covered_until")
    ]
    empty = ", ".join(f"'{each}'" for each in _EMPTY_ARRAYS)
    limits = [
        f"coalesce(CAST({name} AS VARCHAR) NOT IN ({empty}), false)"
        for name in ("action_types", "exclude_action_types")
        if name in types
    ]
    limited = " OR ".join(limits) or "false"
    # A UUID may be in any form, as in the table of events.
    organization = "lower(translate(CAST(organization_id AS VARCHAR), '{}-', ''))"
    records = (
        f"SELECT {organization} AS organization_id, {times[0]} AS covered_from,"
        f" {times[1]} AS covered_until, ({limited}) AS is_limited FROM {quoted(table)}"
    )
    with_times = "covered_from IS NOT NULL AND covered_until IS NOT NULL"
    return f"SELECT * FROM ({records}) AS records WHERE {with_times}"


def _counts(database: Database, spans: str, within: Span) -> tuple[int, int]:
    """How many organizations have records, and how many records are for some action types."""
    sql = (
        "SELECT count(DISTINCT organization_id), count(*) FILTER (WHERE is_limited"
        f" AND covered_from < TIMESTAMP '{within[1]}' AND covered_until > TIMESTAMP '{within[0]}')"
        f" FROM ({spans}) AS spans"
    )
    ((organizations, limited),) = database.query(sql)
    return organizations, limited


def _gaps(spans: str, within: Span) -> str:
    """A query for the time that an organization does not cover, in order.

    A microsecond is not a gap: loaders cut the end of a range, such as ``23:59:59.999999999Z``.
    """
    start, end = (f"TIMESTAMP '{each}'" for each in within)
    return f"""
        WITH spans AS ({spans}),
        covered AS (
            SELECT organization_id, greatest(covered_from, {start}) AS covered_from,
                   least(covered_until, {end}) AS covered_until
            FROM spans WHERE covered_from < {end} AND covered_until > {start}
            UNION ALL SELECT DISTINCT organization_id, {start}, {start} FROM spans
            UNION ALL SELECT DISTINCT organization_id, {end}, {end} FROM spans
        ),
        gaps AS (
            SELECT max(covered_until) OVER (
                       PARTITION BY organization_id ORDER BY covered_from, covered_until
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                   ) AS missing_from,
                   covered_from AS missing_until
            FROM covered
        )
        SELECT missing_from, missing_until FROM gaps
        WHERE missing_until - missing_from > INTERVAL '1 microsecond' ORDER BY 1, 2
    """


def _range_of(year: int) -> Range:
    return Range(
        Instant(f"{year:04}-01-01T00:00:00"), Instant(f"{year:04}-12-31T23:59:59.999999999")
    )


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text or "")
    except ValueError:
        return None
