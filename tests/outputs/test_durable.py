"""A power failure at any time leaves a complete output, which the next export continues.

The system then has only what was flushed to the disk: the bytes of files, and names in folders.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.errors.exceptions import OutputError
from tap_audit_events.outputs import formats
from tap_audit_events.outputs.form import AS_SENT
from tap_audit_events.outputs.state_file import StateFile
from tap_audit_events.outputs.whole_file import WholeFile
from tests.cli.exported import EVERY_FORMAT, FORMATS, expected, exported, history
from tests.outputs.opened import page_of

EVENTS = history(120)


@dataclass(frozen=True)
class Change:
    """A flush of a file or folder, or a new name in a folder. `number` and `folder` are inodes."""

    kind: str
    number: int
    size: int
    folder: int = 0
    name: str = ""

    @property
    def is_of_state(self) -> bool:
        return self.name == "s.json"


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[Change]:
    """The flushes and the new names, in order."""
    noted: list[Change] = []

    def note(kind: str, place: Path | str | int) -> None:
        name = "" if isinstance(place, int) else Path(place).name
        if not name.startswith("."):  # a hidden one may be lost
            folder = 0 if isinstance(place, int) else Path(place).parent.stat().st_ino
            status = os.stat(place)  # noqa: PTH116 - of a descriptor too
            noted.append(Change(kind, status.st_ino, status.st_size, folder, name))

    def watch(name: str, argument: int) -> None:
        change = getattr(os, name)

        def watched(*arguments: Any) -> None:
            change(*arguments)
            note(name, arguments[argument])

        monkeypatch.setattr(os, name, watched)

    for name, argument in {"fsync": 0, "mkdir": 0, "replace": 1, "rename": 1}.items():
        watch(name, argument)
    return noted


def check(changes: list[Change]) -> None:
    """Check that files are flushed before they move, and names before the next step begins.

    A step is a change of the state file, or all changes between two of these.
    """
    for position, change in enumerate(changes):
        if change.kind == "fsync":
            continue
        assert change.folder in dict(flushed(step_after(changes, position))), change
        if change.kind != "mkdir" and not change.name.endswith(".duckdb"):  # DuckDB flushes its own
            assert (change.number, change.size) in flushed(changes[:position]), change


def step_after(changes: list[Change], position: int) -> Iterator[Change]:
    """The changes after this one, until the next step."""
    is_of_state = changes[position].is_of_state
    return takewhile(
        lambda each: each.kind == "fsync" or each.is_of_state == is_of_state,
        changes[position + 1 :],
    )


def flushed(changes: Iterable[Change]) -> set[tuple[int, int]]:
    """The inodes of flushed files and folders, each with its size at that time."""
    return {(each.number, each.size) for each in changes if each.kind == "fsync"}


class Exporter:
    """Exports events with a state file in another folder, or without one."""

    def __init__(self, folder: Path, to: str, *, has_state: bool = True) -> None:
        self.path = folder / "out" / to
        self.path.parent.mkdir(parents=True)
        self._to = to
        self._state = folder / "s.json" if has_state else None

    def export(self, until: int) -> None:
        """Export the events before this number, without those that the state covers."""
        state_file = None if self._state is None else StateFile(self._state, self.path)
        output = formats.FORMATS[formats.form_of(self._to)].new(self.path, state_file, AS_SENT)
        start = output.begin().get("until", 0)
        try:
            if start < until:
                output.write(page_of(EVENTS[start:until]))
            output.commit({"until": until} if start < until else None)
        except OutputError:
            output.discard()
            raise


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("has_state", [True, False])
def test_each_step_of_an_export_is_on_the_disk_before_the_next(
    has_state: bool, to: str, tmp_path: Path, changes: list[Change]
) -> None:
    """A file is flushed before it is renamed, and its new name before the state changes."""
    exporter = Exporter(tmp_path, to, has_state=has_state)
    for until in (50, 120) if has_state or not to.endswith("/") else (50,):
        changes.clear()
        exporter.export(until)
        check(changes)
        assert changes


def test_a_replacement_has_the_mode_and_the_owner_of_the_old_file(tmp_path: Path) -> None:
    """A state file, a table, a folder or a list must not become readable for others."""
    table, folder = Exporter(tmp_path, "a.duckdb"), Exporter(tmp_path / "b", "b/", has_state=False)
    listed = tmp_path / "list.csv"
    table.export(50)
    folder.path.mkdir()
    listed.touch()
    modes = {folder.path: 0o700, table.path: 0o600, tmp_path / "s.json": 0o600, listed: 0o600}
    owner = 1234 if os.geteuid() == 0 else os.geteuid()
    for path, mode in modes.items():
        path.chmod(mode)
        os.chown(path, owner, -1)

    table.export(120)
    folder.export(50)
    file = WholeFile(listed)
    file.commit()
    file.close()

    assert {path: stat.S_IMODE(path.stat().st_mode) for path in modes} == modes
    assert {path.stat().st_uid for path in modes} == {owner}


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL])
def test_an_owner_that_cannot_be_kept_is_not_an_error(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only root can give a file away, and in a container only to users that the container has."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    exporter = Exporter(tmp_path, "a.jsonl")
    exporter.export(50)
    exporter.path.chmod(0o600)
    monkeypatch.setattr(os, "chown", refuse)

    exporter.export(120)

    assert exported(exporter.path) == expected(EVENTS)
    assert stat.S_IMODE(exporter.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("to", EVERY_FORMAT)
@pytest.mark.parametrize("function", ["fsync", pytest.param("replace", marks=pytest.mark.long)])
def test_an_export_after_one_that_a_failing_disk_ended_loses_and_repeats_nothing(
    function: str, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever flush or rename fails, the journal still matches the files that it names."""
    change = getattr(os, function)
    for failing in count():
        numbers = count()

        def fail(*arguments: Any, failing: int = failing, numbers: Iterator[int] = numbers) -> None:
            if next(numbers) == failing:
                raise OSError(errno.EIO, "Input/output error")
            change(*arguments)

        exporter = Exporter(tmp_path / f"{failing}", to)
        exporter.export(50)
        with monkeypatch.context() as patched, suppress(OutputError):
            patched.setattr(os, function, fail)
            exporter.export(120)
        exporter.export(120)

        assert exported(exporter.path) == expected(EVENTS), failing
        if next(numbers) <= failing:  # nothing failed any more
            break
    assert failing > 0
