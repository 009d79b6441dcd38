"""Ranges of time of organizations: how they are cut for the tasks, and how a task reads one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import InputPartition

from tap_audit_events.api.arrow import SCHEMA
from tap_audit_events.api.audit_events import AuditEvents
from tap_audit_events.api.record_batches import combined
from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.events.instants import EARLIEST, Instant, later, next_whole_second
from tap_audit_events.events.window import Window
from tap_audit_events.run.first_instants import first_instants
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.run.searches import search_each
from tap_audit_events.service.client import Client
from tap_audit_events.spark.event_density import EventDensity, from_seconds, to_seconds
from tap_audit_events.spark.options import read_options

PAGES_FOR_A_TASK: Final = 4
"""A range of fewer expected pages is not cut: each cut may cost a request."""

MAX_SAMPLES: Final = 8
"""Maximum number of samples of an organization, besides one for each task."""

MAX_SURVEYS: Final = 8
"""Maximum number of requests in flight while ranges are cut."""

_NINES: Final = "9" * 99
"""The fraction of the last instant of a second: no time has so many digits that are all 9."""

_logger: Final = logging.getLogger("tap_audit_events")


class Range(NamedTuple):
    """A range of time of an organization; both bounds belong to it."""

    organization_id: str
    start: Instant
    end: Instant


class Task(InputPartition):
    """What one task reads, one range after the other.

    Attributes:
        ranges: the ranges.
        action_types: read only these; empty for all.
        now: when they were planned; it counts instead of the clock of the executor.
    """

    def __init__(self, ranges: Sequence[Range], action_types: Sequence[str], now: datetime) -> None:
        super().__init__(None)
        self.ranges, self.action_types, self.now = tuple(ranges), tuple(action_types), now


def before(instant: Instant) -> Instant:
    """The last instant before a whole second."""
    return Instant(f"{later(instant, seconds=-1)}.{_NINES}")


def survey(
    settings: Settings, ranges: Mapping[str, Range], tasks: int, now: datetime
) -> dict[str, EventDensity]:
    """How dense the events of organizations are; one without events is left out.

    Args:
        settings: those of the run.
        ranges: the range of each organization.
        tasks: how many tasks there may be: at most a request for each is sent, and one for each
            four pages that are expected.
        now: the time of the plan.

    Raises:
        AuditEventsError: an organization cannot be read.
    """
    if not ranges:
        return {}
    organizations = tuple(each for each in settings.organizations if each.organization_id in ranges)
    settings = replace(
        settings, organizations=organizations, concurrency=max(MAX_SURVEYS, settings.concurrency)
    )
    search = partial(_density, ranges=ranges, tasks=tasks)
    found = search_each(settings, search, runtime=Runtime(now=lambda: now), logger=_logger)
    with closing(found):
        return {
            client.settings.organization_id: density
            for client, density in found
            if density is not None
        }


def _density(client: Client, ranges: Mapping[str, Range], tasks: int) -> EventDensity | None:
    wanted = ranges[client.settings.organization_id]
    first = None if wanted.start == EARLIEST else wanted.start
    window = Window(first, next_whole_second(wanted.end))
    count = client.settings.page_size
    oldest, _ = first_instants(count, client, window, "asc")
    if not oldest:
        return None
    is_all = len(oldest) < count
    newest = oldest if is_all else first_instants(1, client, window, "desc")[0]
    start, end = to_seconds(min(oldest)), to_seconds(max(newest, default=window.end)) + 1
    density = EventDensity(start, end, to_seconds(window.end))
    density.add(start, sorted(oldest), is_all=is_all)
    requests = 2
    while not is_all and requests < min(tasks + _pages(density, count) / 4, MAX_SAMPLES + tasks):
        time = density.next_sample()
        if time is None:
            break
        window = Window(from_seconds(time), from_seconds(end))
        found, _ = first_instants(count, client, window, "asc")
        density.add(time, sorted(found), is_all=len(found) < count)
        requests += 1
    return density


def _pages(density: EventDensity, page_size: int) -> float:
    return density.events_between(density.start, density.end) / page_size


def cut(
    ranges: Sequence[Range], densities: Mapping[str, EventDensity], tasks: int, page_size: int
) -> list[list[Range]]:
    """Divide ranges among at most so many tasks, so that each has about as many events.

    Without a density, a range is not cut.
    """
    expected = {each: _expected(each, densities, page_size) for each in ranges}
    all_pages = sum(expected.values())
    pieces: list[tuple[float, Range]] = []
    for each, pages in expected.items():
        share = tasks * pages / all_pages if len(ranges) < tasks else 1
        count = max(1, min(round(share), int(pages / PAGES_FOR_A_TASK)))
        pieces += [(pages / count, piece) for piece in _pieces(each, densities, count)]
    loads: list[tuple[float, list[Range]]] = [(0.0, []) for _ in range(min(tasks, len(pieces)))]
    for pages, piece in sorted(pieces, key=lambda each: -each[0]):
        place = min(range(len(loads)), key=lambda number: loads[number][0])
        load, own = loads[place]
        loads[place] = load + pages, [*own, piece]
    return [own for _, own in loads]


def _expected(each: Range, densities: Mapping[str, EventDensity], page_size: int) -> float:
    density = densities.get(each.organization_id)
    if density is None:
        return 1.0
    start, end = max(density.start, to_seconds(each.start)), to_seconds(each.end)
    return 1 + density.events_between(start, end) / page_size


def _pieces(each: Range, densities: Mapping[str, EventDensity], count: int) -> Iterator[Range]:
    start = each.start
    if count > 1:
        density = densities[each.organization_id]
        first = max(density.start, to_seconds(start))
        for time in density.cuts(first, to_seconds(each.end), count):
            end = from_seconds(time)
            yield each._replace(start=start, end=before(end))
            start = end
    yield each._replace(start=start)


def read(
    options: Mapping[str, str], task: InputPartition, columns: Mapping[str, bool]
) -> Iterator[pa.RecordBatch]:
    """The events of a task, with the columns of Spark's schema.

    Args:
        options: those of the data source, read anew on each executor, with its environment.
        task: a `Task`; for any other partition there are no events.
        columns: the columns to read, and whether each may be null.
    """
    if not isinstance(task, Task):
        return
    fields = ((SCHEMA.field(name), is_nullable) for name, is_nullable in columns.items())
    schema = pa.schema(pa.field(each.name, each.type, nullable) for each, nullable in fields)
    each_of = {each.organization_id: each for each in read_options(options).settings.each()}
    for each in task.ranges:
        settings = replace(
            each_of[each.organization_id],
            start_date=None if each.start == EARLIEST else each.start,
            end_date=each.end,
            action_types=task.action_types,
        )
        for batch in _batches(settings, task.now):
            arrays = [batch.column(name) for name in schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _batches(settings: Settings, now: datetime) -> Iterator[pa.RecordBatch]:
    runtime = partial(Runtime, now=lambda: now)
    events = AuditEvents.of_settings(replace(settings, is_one_of_several=False), runtime)
    try:
        with closing(events.pages()) as pages:
            yield from combined(page.arrow() for page in pages)
    except AuditEventsError as error:
        if settings.is_one_of_several:
            error.add_note(f"The organization is {settings.organization_id}.")
        raise
