"""Writes Parquet files so that each is either complete or absent."""

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tap_audit_events import AuditEvents

ROW_GROUP = 100_000
_UNTIL = b"audit_events.until"


def write(path: Path, batches: Iterable[pa.RecordBatch], *, until: datetime, run_id: str) -> int:
    """Write or replace a file, and return the number of its events.

    Readers see the old file or the new one. A process that is killed leaves a hidden file, which
    the next attempt of the same run replaces.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{run_id}.part")
    schema = AuditEvents.arrow_schema().with_metadata({_UNTIL: until.isoformat()})
    try:
        with part.open("wb") as file:
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for table in _row_groups(batches):
                    writer.write_table(table)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return count(path)


def count(path: Path) -> int:
    """Return the number of events in a file."""
    return int(pq.read_metadata(path).num_rows)


def until(path: Path) -> datetime:
    """Return the end of the range in a file, exclusive."""
    return datetime.fromisoformat(pq.read_schema(path).metadata[_UNTIL].decode())


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches to row groups, as a page is too small for a row group."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= ROW_GROUP:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)
