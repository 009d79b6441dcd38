"""Events that differ: the first ones for a terminal, all of them in a file."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

from tap_audit_events.cli.terminal.tables import shown
from tap_audit_events.outputs.csv_file import csv_cells
from tap_audit_events.outputs.whole_file import WholeFile

SHOWN: Final = 20
"""Events of each kind that are shown on a terminal."""

Kind = Literal["missing", "other time", "too many"]


class Difference(NamedTuple):
    """An event that is missing, is too many, or has another time.

    Attributes:
        kind: what differs.
        organization_id: its organization, empty if there is only one.
        id: its id.
        occurred_at: its time at the service, empty if the service does not show it.
        loaded_at: the time in the loaded row; empty if no row, or no time, was loaded.
    """

    kind: Kind
    organization_id: str
    id: str
    occurred_at: str
    loaded_at: str


class DifferenceLists:
    """Lists of events that differ.

    Args:
        file: a CSV file for all of them, which the caller commits; None if not needed.
    """

    def __init__(self, file: WholeFile | None) -> None:
        self._first: dict[Kind, list[Difference]] = {kind: [] for kind in get_args(Kind)}
        self.totals: dict[Kind, int] = dict.fromkeys(get_args(Kind), 0)
        self._file = file
        if file is not None:
            file.write([csv_cells(Difference._fields).encode()])

    def add(self, difference: Difference) -> None:
        """Add an event to its list."""
        self.totals[difference.kind] += 1
        first = self._first[difference.kind]
        if len(first) < SHOWN:
            first.append(difference)
        if self._file is not None:
            self._file.write([csv_cells(difference).encode()])

    def summary(self) -> str:
        """How many events of each kind there are; empty if there are none."""
        return ", ".join(f"{count:,} {kind}" for kind, count in self.totals.items() if count)

    def text(self) -> str:
        """The first events of each kind, and how many more there are."""
        lines = []
        for kind, first in self._first.items():
            lines += [f"\n{kind.capitalize()}: {self.totals[kind]:,}"] if first else []
            lines += ["  " + "  ".join(_texts_of(each)) for each in first]
            if more := self.totals[kind] - len(first):
                lines.append(f"  … and {more:,} more; --list FILE lists all of them")
        return "".join(f"{line}\n" for line in lines)


def _texts_of(difference: Difference) -> list[str]:
    times = [difference.occurred_at or difference.loaded_at or "no time"]
    if difference.occurred_at and difference.loaded_at:
        times.append(f"loaded as {difference.loaded_at}")
    texts = [difference.organization_id, difference.id, *times]
    return [shown(text) for text in texts if text]
