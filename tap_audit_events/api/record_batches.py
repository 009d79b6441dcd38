"""Record batches that wait until there are enough of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from tap_audit_events.api.arrow import SCHEMA
from tap_audit_events.errors.exceptions import AuditEventsError

FEW_ROWS: Final = 100
"""A batch takes some 15 kB besides its rows, so those of fewer rows are combined."""


class RecordBatches:
    """Record batches in the order in which they were added. Small ones are combined.

    So the memory depends on the rows, and not on the number of pages that they came in.

    Args:
        schema: their columns.

    Attributes:
        rows: how many rows wait.
        bytes: the bytes of their values.
    """

    def __init__(self, schema: pa.Schema = SCHEMA) -> None:
        self._schema = schema
        self._large: list[pa.RecordBatch] = []
        self._small: list[pa.RecordBatch] = []
        self.rows = self.bytes = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self._large
        yield from self._small

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self.bytes += batch.nbytes
        is_large = batch.num_rows >= FEW_ROWS
        if not is_large:
            self._small.append(batch)
        if is_large or len(self._small) >= FEW_ROWS:
            self._large += _combined(pa.Table.from_batches(self._small, self._schema))
            self._small.clear()
        if is_large:
            self._large.append(batch)

    def take(self) -> pa.Table:
        """All rows, which do not wait any more."""
        table = pa.Table.from_batches(list(self), self._schema)
        self.clear()
        return table

    def clear(self) -> None:
        self._large.clear()
        self._small.clear()
        self.rows = self.bytes = 0


def combined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches. What was read before an error comes before the error."""
    waiting = RecordBatches()
    try:
        for batch in batches:
            waiting.add(batch)
            if waiting.rows >= FEW_ROWS:
                yield from _combined(waiting.take())
    except AuditEventsError:
        yield from _combined(waiting.take())
        raise
    yield from _combined(waiting.take())


def _combined(table: pa.Table) -> list[pa.RecordBatch]:
    """The rows in one batch, or in a few if a column would be too large for one."""
    batches: list[pa.RecordBatch] = table.combine_chunks().to_batches()
    return batches
