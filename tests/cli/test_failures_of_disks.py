"""Disks that are full and folders that cannot be written to: the output stays as it was."""

import errno
import os
from pathlib import Path

import pytest

from tap_audit_events.errors.exceptions import OutputError
from tap_audit_events.outputs import parquet_file
from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.exported import EVERY_FORMAT, FORMATS, expected, exported
from tests.cli.failing import EVENTS, full_disk, refused, varied
from tests.outputs.kinds import FileKind
from tests.outputs.opened import begun, new_output, page_of, write_and_commit


@pytest.mark.long
@pytest.mark.parametrize("to", FORMATS)
def test_a_full_disk_leaves_the_output_that_is_replaced_as_it_was(
    to: str, service: Service, command: Command
) -> None:
    """A limit of the size of each file acts as the full disk."""
    if not to.endswith("/"):
        service.add(EVENTS[:10])
        command("export", "--to", to).raise_for_exit_code()
    before = exported(command.folder / to)
    service.add(varied(3000))
    output = FileKind(command, to)
    output.more = ()

    with output.full() as export:
        done = export()

    assert "The output cannot be written: " in refused(done)
    assert exported(command.folder / to) == before
    assert command.left_over == []


@pytest.mark.parametrize("to", ["events.parquet", "events.jsonl", "events.jsonl.gz"])
def test_a_disk_without_room_for_the_old_events_leaves_no_new_file(
    to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new file of an export with state begins with a copy of the old one."""
    monkeypatch.setattr(parquet_file, "MAX_ROWS", 50)  # so that rows are written during the copy
    path, state_path = tmp_path / to, tmp_path / "s.json"
    output = begun(tmp_path, to)
    write_and_commit(output, varied(300))
    before = path.read_bytes(), state_path.read_bytes()

    output = begun(tmp_path, to)
    with full_disk(len(before[0]) // 2):
        with pytest.raises(OutputError, match=f"AE-EXPORT: .*{tmp_path}"):
            write_and_commit(output, EVENTS)
        output.discard()

    assert (path.read_bytes(), state_path.read_bytes()) == before
    assert sorted(tmp_path.iterdir()) == sorted([path, state_path])


@pytest.mark.parametrize("to", [to for to in FORMATS if to != "events.duckdb"])
def test_a_disk_without_room_for_the_state_leaves_no_new_file(to: str, tmp_path: Path) -> None:
    """The state file is replaced as a whole, and before the output is."""
    state_path = tmp_path / "s.json"
    output = begun(tmp_path, to)
    write_and_commit(output, EVENTS[:50])
    before = exported(tmp_path / to), state_path.read_bytes()

    output = begun(tmp_path, to)
    output.write(page_of(EVENTS[50:]))
    with full_disk(200_000):
        with pytest.raises(OutputError, match=f"AE-EXPORT: .*{tmp_path}"):
            output.commit({"until": "later" * 50_000})
        output.discard()

    assert (exported(tmp_path / to), state_path.read_bytes()) == before
    assert [each for each in tmp_path.rglob("*") if each.name.startswith(".")] == []


@pytest.mark.parametrize("to", FORMATS)
def test_an_output_that_cannot_take_its_place_is_completed_by_the_next_export(
    to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state file names the new files, so they are kept; a DuckDB file is written again."""
    replace = os.replace

    def refuse(source: Path, final: Path) -> None:
        if final.name != "s.json":
            raise OSError(errno.EIO, "Input/output error")
        replace(source, final)

    output = begun(tmp_path, to)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        with pytest.raises(OutputError, match="Input/output error"):
            write_and_commit(output, EVENTS)
    output.discard()
    assert exported(tmp_path / to) == []

    output = new_output(tmp_path, to)
    if not output.begin():
        write_and_commit(output, EVENTS)

    assert exported(tmp_path / to) == expected(EVENTS)
    assert [each for each in tmp_path.rglob("*") if each.name.startswith(".")] == []


@pytest.mark.parametrize("to", EVERY_FORMAT)
@pytest.mark.parametrize("folder", ["missing", "/proc"])
def test_an_error_names_a_folder_that_cannot_be_written_to(
    folder: str, to: str, command: Command
) -> None:
    done = command("export", "--to", f"{folder}/{to}")

    assert f"{folder}/{to.rstrip('/')}" in refused(done)
