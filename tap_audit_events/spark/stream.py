"""Reads new events again and again: ``spark.readStream``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from tap_audit_events.events.instants import (
    EARLIEST,
    LATEST,
    Instant,
    instant_of,
    later,
    parse_instant,
    text_of,
    whole_second,
)
from tap_audit_events.spark.event_density import EventDensity, from_seconds, to_seconds
from tap_audit_events.spark.options import (
    EARLIEST_OPTION,
    LATEST_OPTION,
    SparkOptions,
    read_options,
)
from tap_audit_events.spark.ranges import (
    PAGES_FOR_A_TASK,
    Range,
    Task,
    before,
    cut,
    read,
    survey,
)

Offset = dict[str, str]
"""For each organization the instant up to which its events were read, or `EARLIEST_OPTION`."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads in batches that end `lookback_seconds` before they are planned.

    Events may become visible late, but within that time. So a batch that is read again after a
    failure has the same events, and no event comes between two batches.

    An organization that is new starts as a new query does. One that was removed keeps its offset,
    so that it continues there if it is added again.

    Args:
        options: those of the data source.
        columns: the columns to read, and whether each may be null.
    """

    def __init__(self, options: Mapping[str, str], columns: Mapping[str, bool]) -> None:
        self._options, self._columns = options, columns
        self._densities: dict[str, EventDensity] = {}
        self._known_until: dict[str, Instant] = {}
        self._last_end: Instant | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - as all names here, Spark's
        options = read_options(self._options)
        return dict.fromkeys(_organization_ids(options), self._first(options))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(read_options(self._options).max_events_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of the query."""
        self._last_end = self._end(read_options(self._options))

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """The end of the next batch: each organization has its share of the limit.

        An organization that is not in `start` is added with its first offset, without events.
        """
        options = read_options(self._options)
        end = self._last_end or self._end(options)
        first = self._first(options)
        offset = dict(start)
        open_ranges = {}
        for each in _organization_ids(options):
            offset.setdefault(each, first)
            begin = _instant(offset[each], options)
            if each in start and begin < end:
                open_ranges[each] = Range(each, begin, before(end))
        self._learn(options, open_ranges)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        for each, wanted in open_ranges.items():
            share = None if most is None else max(1, most // len(open_ranges))
            offset[each] = text_of(self._end_of_batch(wanted, end, share))
        return offset

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        options = read_options(self._options)
        return dict.fromkeys(_organization_ids(options), text_of(self._end(options)))

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        options = read_options(self._options)
        now = datetime.now(UTC)
        ids = set(_organization_ids(options))
        ranges = []
        for each, text in end.items():
            if each in ids and each in start and start[each] != text:
                begin, until = _instant(start[each], options), parse_instant(text)
                last = min(before(until), options.settings.end_date or LATEST)
                ranges.append(Range(each, begin, last))
        self._learn(options, {each.organization_id: each for each in ranges})
        settings = options.settings
        tasks = cut(ranges, self._densities, options.partitions, settings.page_size)
        return [Task(each, settings.action_types, now) for each in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._options, partition, self._columns)

    def _end_of_batch(self, wanted: Range, end: Instant, most: int | None) -> Instant:
        """Where about so many events of an organization end; at least a second after its start."""
        density = self._densities.get(wanted.organization_id)
        if most is None or density is None:
            return end
        start = max(density.start, to_seconds(wanted.start))
        return min(end, from_seconds(density.end_of(start, most)))

    def _first(self, options: SparkOptions) -> str:
        if options.starting_from == LATEST_OPTION:
            return text_of(self._end(options))
        if options.starting_from == EARLIEST_OPTION:
            return EARLIEST_OPTION
        return text_of(whole_second(Instant(options.starting_from)))

    def _end(self, options: SparkOptions) -> Instant:
        """The end of a batch that is planned now; its last second is over and visible."""
        settings = options.settings
        end = later(instant_of(datetime.now(UTC)), seconds=-settings.lookback_seconds)
        return whole_second(min(end, later(settings.end_date or LATEST, seconds=1)))

    def _learn(self, options: SparkOptions, ranges: Mapping[str, Range]) -> None:
        """Learn where events lie, unless it is known, or so few are expected that it is no use."""
        size = options.settings.page_size
        unknown = {}
        for each, wanted in ranges.items():
            known_until = self._known_until.get(each, EARLIEST)
            density = self._densities.get(each)
            if wanted.end <= known_until:
                continue
            if density is not None:
                begin = max(density.start, to_seconds(max(wanted.start, known_until)))
                expected = density.events_between(begin, to_seconds(wanted.end))
                if expected < PAGES_FOR_A_TASK * size:
                    continue
            unknown[each] = wanted
        found = survey(options.settings, unknown, options.partitions, datetime.now(UTC))
        self._densities |= found
        for each, wanted in unknown.items():
            self._known_until[each] = wanted.end


def _organization_ids(options: SparkOptions) -> list[str]:
    return [each.organization_id for each in options.settings.each()]


def _instant(text: str, options: SparkOptions) -> Instant:
    start = options.settings.start_date or EARLIEST
    return start if text == EARLIEST_OPTION else max(start, parse_instant(text))
