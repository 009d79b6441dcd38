"""The findings of the tests about the loaders, and the report that gathers them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.loaders.comparison import Changes

REPORT: Final = Path(__file__).with_name("report.json")
FOLDER_VARIABLE: Final = "LOADER_FINDINGS"


class CaseReport(msgspec.Struct, frozen=True):
    """The findings of one case.

    Attributes:
        versions: of the loader and of the mapper.
        changes: what happened to the hostile events.
        columns: the type of each column.
        events_per_second: None if it was not measured.
    """

    versions: dict[str, str]
    changes: dict[str, Changes]
    columns: dict[str, str]
    events_per_second: float | None = None


class Report(msgspec.Struct, frozen=True):
    """All findings: the contents of `report.json`."""

    date: str
    machine: dict[str, str]
    cases: dict[str, CaseReport]


def note(kind: str, case: str, found: Mapping[str, Any]) -> None:
    """Write the findings of a test to a file, if the variable names a folder for them."""
    if FOLDER_VARIABLE in os.environ:
        folder = Path(os.environ[FOLDER_VARIABLE])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{kind} {case}.json").write_bytes(msgspec.json.encode({case: found}))


def read(path: Path = REPORT) -> Report:
    return msgspec.json.decode(path.read_bytes(), type=Report)
