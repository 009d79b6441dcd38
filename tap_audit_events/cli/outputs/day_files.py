"""A folder of Parquet files for each UTC day, as Hive and most query engines expect it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final
from uuid import uuid4

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.outputs.durable import Rename, sync_folder
from tap_audit_events.cli.outputs.parquet_file import ParquetWriter

MAX_OPEN: Final = 4
"""Maximum number of days with open files: late events belong to earlier days."""

STAGING: Final = ".new"
_DAY: Final = len("2026-01-31")


@dataclass
class _Part:
    path: Path
    writer: ParquetWriter


class DayFiles:
    """Writes one new file for each day that has new events.

    A day gets several files if its events continue after those of `MAX_OPEN` other days: several
    organizations are read side by side, each at a different day.

    Args:
        folder: the folder, which need not exist.
        staging: name of a hidden folder in it, for incomplete files. Files that an
            interrupted run left there are removed first.
    """

    def __init__(self, folder: Path, staging: str = STAGING) -> None:
        self._folder = folder
        self._staging = folder / staging
        self._run = uuid4().hex[:12]
        self._open: dict[str, _Part] = {}
        self._renames: list[Rename] = []
        shutil.rmtree(self._staging, ignore_errors=True)

    def write(self, page: EventPage) -> None:
        batch = page.arrow()
        for day, start, end in _days(page):
            self._part(day).writer.write_batch(batch.slice(start, end - start))

    def finish(self) -> list[Rename]:
        """Write everything to the disk, and return the files with their final paths."""
        for day in list(self._open):
            self._finish_part(day)
        if self._renames:
            sync_folder(self._staging)
        return self._renames

    def close(self) -> None:
        """End early; remove what was written. Never raises."""
        for part in self._open.values():
            with suppress(Exception):  # a full disk refuses the last bytes too
                part.writer.close()
        self._open.clear()
        self.remove_staging()

    def remove_staging(self) -> None:
        """Remove the hidden folder."""
        shutil.rmtree(self._staging, ignore_errors=True)

    def _part(self, day: str) -> _Part:
        part = self._open.pop(day, None)
        if part is None:
            if len(self._open) >= MAX_OPEN:
                self._finish_part(next(iter(self._open)))
            part = self._start()
        self._open[day] = part  # last, as the most recently used one
        return part

    def _start(self) -> _Part:
        self._staging.mkdir(parents=True, exist_ok=True)
        number = len(self._renames) + len(self._open)
        path = self._staging / f"{number}"
        return _Part(path, ParquetWriter(path))

    def _finish_part(self, day: str) -> None:
        part = self._open[day]
        part.writer.finish()
        del self._open[day]  # not earlier: if it cannot be finished, `close` closes it
        name = f"part-{self._run}-{part.path.name}.parquet"
        self._renames.append((part.path, self._folder / f"day={day}" / name))


def _days(page: EventPage) -> Iterator[tuple[str, int, int]]:
    """Each run of events of the same UTC day: the day, and where the run starts and ends."""
    start = 0
    for day, instants in groupby(instant[:_DAY] for instant in page.instants):
        end = start + sum(1 for _ in instants)
        yield day, start, end
        start = end
