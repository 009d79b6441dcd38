"""Reads a range at once: ``spark.read``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from tap_audit_events.config.settings import Settings
from tap_audit_events.events.instants import EARLIEST, LATEST, instant_of, whole_second
from tap_audit_events.spark.filters import Wanted, wanted
from tap_audit_events.spark.options import read_options
from tap_audit_events.spark.ranges import Range, Task, cut, read, survey


class BatchReader(DataSourceReader):
    """Cuts the range into tasks on the driver; executors read them.

    It is sent to them, so it holds options, and no token.

    Args:
        options: those of the data source.
        columns: the columns to read, and whether each may be null.
    """

    def __init__(self, options: Mapping[str, str], columns: Mapping[str, bool]) -> None:
        self._options, self._columns = options, columns
        self._wanted = Wanted()

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks. The range ends now, or at ``end_date``."""
        options = read_options(self._options)
        now = datetime.now(UTC)
        settings = replace(
            options.settings, action_types=_action_types(options.settings, self._wanted)
        )
        if self._wanted.action_types is not None and not settings.action_types:
            return []
        ranges = _ranges(settings, self._wanted, now)
        if len(ranges) < options.partitions and options.partitions > 1:
            densities = survey(settings, ranges, options.partitions, now)
        else:
            densities = {}  # each organization is read by one task
        tasks = cut(list(ranges.values()), densities, options.partitions, settings.page_size)
        return [Task(each, settings.action_types, now) for each in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a task."""
        return read(self._options, partition, self._columns)


class FilteringReader(BatchReader):
    """Requests only what the filters of the query let through, as far as the service can filter.

    Spark refuses it unless ``spark.sql.python.filterPushdown.enabled`` is true.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's
        """Note what the filters say; Spark applies all of them again."""
        self._wanted = wanted(filters)
        return filters


def _action_types(settings: Settings, found: Wanted) -> tuple[str, ...]:
    """The action types to request; empty for all of them, or if the filters leave none."""
    if found.action_types is None:
        return settings.action_types
    configured = settings.action_types or found.action_types
    return tuple(sorted((found.action_types & set(configured)) - {*settings.exclude_action_types}))


def _ranges(settings: Settings, found: Wanted, now: datetime) -> dict[str, Range]:
    """The range of each organization that the filters leave."""
    start = max(settings.start_date or EARLIEST, found.start)
    end = min(settings.end_date or LATEST, found.end, whole_second(instant_of(now)))
    if end < start:
        return {}
    wanted_ids = found.organization_ids
    return {
        each.organization_id: Range(each.organization_id, start, end)
        for each in settings.each()
        if wanted_ids is None or each.organization_id in wanted_ids
    }
