"""A Parquet file: row groups of a bounded size, compressed with zstd."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.api.record_batches import RecordBatches
from tap_audit_events.outputs.durable import sync
from tap_audit_events.outputs.form import AS_SENT, Form
from tap_audit_events.outputs.state_checks import other_columns

MAX_ROWS: Final = 100_000
MAX_BYTES: Final = 32_000_000
"""The Arrow data in one row group, which is kept in memory until it is full."""

_COPIED_ROWS: Final = 1_000


class ParquetWriter:
    """Writes a new file.

    Args:
        path: the new file.
        form: the form of the events.
    """

    def __init__(self, path: Path, form: Form = AS_SENT) -> None:
        self._form = form
        self._batches = RecordBatches(form.schema)
        self._file = path.open("wb")
        self._writer = pq.ParquetWriter(self._file, form.schema, compression="zstd")

    def write(self, page: EventPage) -> None:
        self.write_batch(self._form.rows(page))

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows; they leave memory when their row group is full."""
        self._batches.add(batch)
        if self._batches.rows >= MAX_ROWS or self._batches.bytes >= MAX_BYTES:
            self._write_group()

    def write_table(self, table: pa.Table) -> None:
        """Write a row group."""
        self._writer.write_table(table, row_group_size=table.num_rows)

    def finish(self, *, syncs: bool = True) -> None:
        """Write everything, and make sure that it is on the disk, unless that happens later."""
        self._write_group()
        self._writer.close()
        if syncs:
            sync(self._file)
        self._file.close()

    def close(self) -> None:
        """End early; the file is not complete."""
        self._batches.clear()
        self._writer.is_open = False  # else it would write when it is deleted
        self._file.close()

    def _write_group(self) -> None:
        if self._batches.rows:
            self.write_table(self._batches.take())

    def copy(self, old: Path) -> None:
        """Add the rows of another file; its small row groups become large ones.

        Raises:
            SettingsError: it has other columns.
        """
        with pq.ParquetFile(old) as source:
            if not source.schema_arrow.equals(self._form.schema):
                raise other_columns(old)
            for batch in source.iter_batches(_COPIED_ROWS):
                self.write_batch(batch)
