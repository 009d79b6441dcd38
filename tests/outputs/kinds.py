"""The kinds of outputs that `test_histories.py` runs through its histories: a row for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tests.cli.command import Command
from tests.cli.exported import FORMATS, QUICK, Event, exported, ocsf_texts
from tests.outputs.delta_table import DeltaBucket, DeltaFolder
from tests.outputs.iceberg_table import IcebergTable
from tests.outputs.kind import Kind
from tests.outputs.postgres_table import PostgresTable

NewKind: TypeAlias = Callable[[pytest.FixtureRequest, Command], Kind]


class FileKind(Kind):
    """A file or folder, whose form selects the kind, and a state file."""

    more: tuple[str, ...] = ("--state", "s.json")

    def __init__(self, command: Command, to: str) -> None:
        super().__init__(command)
        self.to = to

    def events(self) -> list[Event]:
        return exported(self.command.folder / self.to)

    def ocsf(self) -> list[str]:
        return ocsf_texts(self.command.folder / self.to)


def _file(to: str) -> NewKind:
    return lambda _, command: FileKind(command, to)


ROWS: dict[str, tuple[NewKind, Any]] = {
    **{to: (_file(to), () if to in QUICK else pytest.mark.long) for to in FORMATS},
    "delta": (DeltaFolder.from_request, ()),
    "delta-s3": (DeltaBucket.from_request, ()),
    "iceberg": (IcebergTable.from_request, ()),
    "postgresql": (PostgresTable.from_request, pytest.mark.loaders),
}
"""How to create an output of each kind, and the marks of its tests. Quick runs leave out those that
write a single file as JSON Lines does."""

KINDS = [pytest.param(new, id=name, marks=marks) for name, (new, marks) in ROWS.items()]

KILLS = [
    *(
        pytest.param(new, 100, id=f"{name}-100", marks=marks or pytest.mark.long)
        for name, (new, marks) in ROWS.items()
    ),
    *(pytest.param(new, 5, id=f"{name}-5") for name, (new, marks) in ROWS.items() if not marks),
]
"""Each kind, and how many runs are killed: a hundred, and a few in quick runs."""
