"""Lists of the events that differ: the first ones for a terminal, all of them in a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tap_audit_events.cli.proof.comparison import Difference
from tap_audit_events.cli.terminal.csv_line import csv_line
from tap_audit_events.outputs.whole_file import WholeFile

SHOWN: Final = 20
"""Events of each kind that are shown on a terminal."""


class DifferenceLists:
    """Lists of events that differ.

    Args:
        file: a CSV file for all of them, which the caller commits; None if not needed.
    """

    def __init__(self, file: WholeFile | None) -> None:
        self._first: dict[str, list[Difference]] = {}
        self.totals: dict[str, int] = {}
        self._file = file
        if file is not None:
            file.write([csv_line(Difference._fields).encode()])

    def add(self, differences: Iterable[Difference]) -> None:
        """Add events to their lists."""
        for each in differences:
            self.totals[each.kind] = self.totals.get(each.kind, 0) + 1
            first = self._first.setdefault(each.kind, [])
            if len(first) < SHOWN:
                first.append(each)
            if self._file is not None:
                self._file.write([csv_line(each).encode()])

    def text(self) -> str:
        """The first events of each kind, and how many more there are."""
        lines = []
        for kind, first in self._first.items():
            lines.append(f"\n{kind.capitalize()}: {self.totals[kind]:,}")
            lines += ["  " + "  ".join(_shown(each)) for each in first]
            if more := self.totals[kind] - len(first):
                lines.append(f"  … and {more:,} more; --list FILE lists all of them")
        return "".join(f"{line}\n" for line in lines)


def _shown(difference: Difference) -> list[str]:
    times = [difference.occurred_at or difference.loaded_at or "no time"]
    if difference.occurred_at and difference.loaded_at:
        times.append(f"loaded as {difference.loaded_at}")
    texts = [difference.organization_id, difference.id, *times]
    return [text if text.isprintable() else repr(text) for text in texts if text]
