"""Readers see only complete Parquet files in a folder, while an export runs and after a kill."""

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tap_audit_events.outputs import day_files
from tap_audit_events.outputs.output import Output
from tests.cli.exported import expected, exported, history
from tests.outputs.opened import begun, new_output, page_of

OLD, NEW = history(100), history(200, start=100)


@pytest.fixture(autouse=True)
def many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few events wait in memory, so that there are files soon."""
    monkeypatch.setattr(day_files, "MAX_ROWS", 10)


def check_readable(folder: Path) -> None:
    """Check each file as the strictest reader would, which does not ignore hidden ones."""
    for path in folder.rglob("*"):
        if path.is_file():
            assert path.suffix == ".parquet", path
            pq.read_table(path)


def written(folder: Path, events: list[dict[str, Any]]) -> Output:
    """An export that is not committed yet."""
    output = begun(folder, "events/")
    for start in range(0, len(events), 20):
        output.write(page_of(events[start : start + 20]))
    return output


def half_committed(
    folder: Path, events: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Export until the second file should get its final path, as a kill would end it."""
    replace = os.replace
    renamed: list[Path] = []

    def dying(source: Path, final: Path) -> None:
        if final.suffix == ".parquet":
            if renamed:
                raise KeyboardInterrupt
            renamed.append(final)
        replace(source, final)

    output = written(folder, events)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            output.commit({"until": "now"})


def test_a_folder_has_only_complete_files_while_an_export_runs(tmp_path: Path) -> None:
    written(tmp_path, OLD).commit({"until": "then"})
    before = sorted((tmp_path / "events").rglob("*"))

    output = written(tmp_path, NEW)

    assert len(list(tmp_path.glob(".events.new-*/*"))) > 1
    assert sorted((tmp_path / "events").rglob("*")) == before
    output.commit({"until": "now"})
    check_readable(tmp_path / "events")
    assert exported(tmp_path / "events") == expected([*OLD, *NEW])
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_folder_has_only_complete_files_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, OLD).commit({"until": "then"})

    half_committed(tmp_path, NEW, monkeypatch)

    check_readable(tmp_path / "events")
    assert len(OLD) < len(exported(tmp_path / "events")) < len(OLD + NEW)
    new_output(tmp_path, "events/").begin()
    assert exported(tmp_path / "events") == expected([*OLD, *NEW])
    assert [path.name for path in tmp_path.glob(".*")] == []


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EACCES])
def test_a_folder_that_is_a_mount_has_its_hidden_folder_inside(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files can be renamed only within a mount. An earlier version always wrote there."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    written(tmp_path, OLD).commit({"until": "then"})
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        output = written(tmp_path, NEW[:100])
        assert [path.name for path in tmp_path.glob(".*")] == []
        output.commit({"until": "later"})
        assert exported(tmp_path / "events") == expected([*OLD, *NEW[:100]])

        half_committed(tmp_path, NEW[100:], monkeypatch)

    new_output(tmp_path, "events/").begin()  # completes what is in the old place
    assert exported(tmp_path / "events") == expected([*OLD, *NEW])
    check_readable(tmp_path / "events")
    assert [path.name for path in tmp_path.glob("**/.*")] == []
