"""A folder of Parquet files for each UTC day, as Hive and most query engines expect it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.api.record_batches import RecordBatches
from tap_audit_events.outputs.durable import Rename, sync
from tap_audit_events.outputs.form import AS_SENT, Form
from tap_audit_events.outputs.parquet_file import MAX_BYTES, MAX_ROWS, ParquetWriter
from tap_audit_events.run.disk import sync_folder

MAX_OPEN: Final = 4
"""Maximum number of days with open files: late events belong to earlier days."""


class DayFiles:
    """Writes one new file for each day that has new events.

    Events wait in memory until there are many, or until the end, and are then written by day. The
    parts of a day whose events come later again, as those of the next organization, are joined at
    the end.

    Args:
        folder: the folder, which need not exist.
        new_staging: creates a hidden folder for incomplete files, from which they can be renamed
            into `folder`; called when it is needed.
        form: the form of the events.
    """

    def __init__(self, folder: Path, new_staging: Callable[[], Path], form: Form = AS_SENT) -> None:
        self._form = form
        self._folder = folder
        self._new_staging = new_staging
        self._staging: Path | None = None
        self._run = uuid4().hex[:12]
        self._waiting = RecordBatches(form.schema)
        self._open: dict[str, ParquetWriter] = {}
        self._parts: dict[str, list[Path]] = {}
        self._count = 0

    def write(self, page: EventPage) -> None:
        self._waiting.add(self._form.rows(page))
        if self._waiting.rows >= MAX_ROWS or self._waiting.bytes >= MAX_BYTES:
            self._write_waiting()

    def finish(self) -> list[Rename]:
        """Write everything to the disk, and return the files with their final paths."""
        self._write_waiting()
        for day in list(self._open):
            self._close_part(day)
        renames = [(self._joined(self._parts[day]), day) for day in sorted(self._parts)]
        if self._staging is not None:
            sync_folder(self._staging)
        return [
            (file, self._folder / f"day={day}" / f"part-{self._run}-{file.name}.parquet")
            for file, day in renames
        ]

    def close(self) -> None:
        """End early; remove what was written. Never raises."""
        for writer in self._open.values():
            with suppress(Exception):  # a full disk refuses the last bytes too
                writer.close()
        self._open.clear()
        self.remove_staging()

    def remove_staging(self) -> None:
        """Remove the hidden folder."""
        if self._staging is not None:
            shutil.rmtree(self._staging, ignore_errors=True)

    def _write_waiting(self) -> None:
        if self._waiting.rows:
            for day, table in _by_day(self._waiting.take()):
                self._writer_of(day).write_table(table)

    def _writer_of(self, day: str) -> ParquetWriter:
        writer = self._open.pop(day, None)
        if writer is None:
            if len(self._open) >= MAX_OPEN:
                self._close_part(next(iter(self._open)))
            path = self._new_path()
            self._parts.setdefault(day, []).append(path)
            writer = ParquetWriter(path, self._form)
        self._open[day] = writer  # last, as the most recently used one
        return writer

    def _new_path(self) -> Path:
        if self._staging is None:
            self._staging = self._new_staging()
        self._count += 1
        return self._staging / f"{self._count}"

    def _close_part(self, day: str) -> None:
        self._open[day].finish(syncs=False)
        del self._open[day]  # not earlier: if it cannot be finished, `close` closes it

    def _joined(self, parts: list[Path]) -> Path:
        """One file of the rows of all parts of a day, on the disk."""
        if len(parts) == 1:
            with parts[0].open("rb") as file:
                sync(file)
            return parts[0]
        path = self._new_path()
        writer = ParquetWriter(path, self._form)
        try:
            for part in parts:
                writer.copy(part)
                part.unlink()
            writer.finish()
        except BaseException:
            writer.close()
            raise
        return path


def _by_day(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each UTC day, in the order in which they came."""
    days = table["occurred_at"].cast(pa.date32())
    order = pc.sort_indices(days)  # stable
    table, start = table.take(order), 0
    for each in pc.value_counts(days.take(order)):
        count = each["counts"].as_py()
        yield each["values"].cast(pa.string()).as_py(), table.slice(start, count)
        start += count
