"""Keeps the events of the service, compressed in a file, until it is known which are missing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

import pyarrow as pa

from tap_audit_events.api.event_page import EventPage

_SCHEMA: Final = pa.schema([("text", pa.large_binary())])


class KeptPages:
    """The pages of a run, in a new file.

    Memory holds only a number and an organization for each page.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        self._writer = pa.ipc.new_file(str(path), _SCHEMA, options=options)
        self._starts: list[int] = []
        self._organizations: list[str] = []
        self._events = 0

    def add(self, page: EventPage) -> None:
        self._starts.append(self._events)
        self._organizations.append(page.organization_id)
        self._events += len(page)
        self._writer.write(pa.record_batch([pa.array(page.raw, pa.large_binary())], schema=_SCHEMA))

    def events(self, numbers: Iterable[int]) -> Iterator[tuple[str, list[bytes]]]:
        """Organizations with texts of their events. An event is numbered from the first page on.

        Numbers of the same page should follow each other. No page can be added afterwards.
        """
        self._writer.close()
        with pa.ipc.open_file(str(self.path)) as file:
            for page, group in groupby(numbers, key=self._page_of):
                texts = file.get_batch(page).column("text")
                start = self._starts[page]
                yield self._organizations[page], [texts[n - start].as_py() for n in group]

    def _page_of(self, number: int) -> int:
        return bisect_right(self._starts, number) - 1
