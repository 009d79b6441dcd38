"""An output that somebody moves, changes or removes after an export was killed."""

import shutil

import pytest

from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.outputs.killing import NEW, OLD, deaths, found, ids, old_is_exported


@pytest.mark.long
@pytest.mark.parametrize("to", ["out/events.jsonl", "out/events.duckdb", "out/events/"])
def test_an_output_that_is_moved_away_after_a_kill_loses_and_repeats_nothing(
    to: str, service: Service, command: Command
) -> None:
    """The next run begins an output with the new events, or refuses until the old one is back."""
    arguments = ("export", "--to", to, "--state", "s.json")
    out, archive = command.folder / "out", command.folder / "archive"
    out.mkdir()
    old_is_exported(service, command, *arguments)
    refused = 0

    for step in deaths(command, *arguments):
        out.rename(archive)
        out.mkdir()
        done = command(*arguments)
        if done.exit_code != 0:
            refused += 1
            assert done.error.startswith("AE-EXPORT: An export with "), step
            assert list(out.iterdir()) == [], step
            out.rmdir()
            archive.rename(out)
            command(*arguments).raise_for_exit_code()
        assert sorted(found(command, to) + found(command, f"archive/{to[4:]}")) == ids(OLD + NEW)
    assert refused > 0


@pytest.mark.parametrize("is_moved", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_file_that_is_moved_or_changed_after_a_kill_loses_and_repeats_nothing(
    is_moved: bool, service: Service, command: Command
) -> None:
    """Only the file is moved or changed; the complete new one is still hidden next to it."""
    arguments = ("export", "--to", "events.jsonl", "--state", "s.json")
    old_is_exported(service, command, *arguments)
    added = b'{"id":"added","occurredAt":"2024-05-06T07:00:00Z"}\n'
    refused = 0

    for step in deaths(command, *arguments):
        events, archived = command.folder / "events.jsonl", command.folder / "archived.jsonl"
        before = events.read_bytes()
        if is_moved:
            events.rename(archived)
        else:
            events.write_bytes(before + added)
        done = command(*arguments)
        if done.exit_code != 0:
            refused += 1
            assert done.error.startswith("AE-EXPORT: "), step
        if not is_moved:
            assert done.exit_code != 0
            assert events.read_bytes() == before + added, step
            events.write_bytes(before)
        elif done.exit_code != 0:
            archived.rename(events)
        command(*arguments).raise_for_exit_code()
        archive = found(command, "archived.jsonl") if archived.exists() else []
        assert sorted(found(command, "events.jsonl") + archive) == ids(OLD + NEW), step
    assert refused > 0


@pytest.mark.parametrize("to", ["events.jsonl", pytest.param("events/", marks=pytest.mark.long)])
def test_a_completed_file_that_somebody_removed_after_a_kill_is_not_lost_silently(
    to: str, service: Service, command: Command
) -> None:
    """Somebody may remove hidden files because they look unneeded."""
    arguments = ("export", "--to", to, "--state", "s.json")
    old_is_exported(service, command, *arguments)
    refused = 0

    for step in deaths(command, *arguments):
        for hidden in list(command.folder.glob("**/.*new*")):
            shutil.rmtree(hidden) if hidden.is_dir() else hidden.unlink()
        before = found(command, to)
        done = command(*arguments)
        if done.exit_code != 0:
            refused += 1
            assert done.error.startswith("AE-EXPORT: An export with "), step
            assert found(command, to) == before, step
            shutil.rmtree(command.folder)
            command.folder.mkdir()
            command(*arguments).raise_for_exit_code()
        assert found(command, to) == ids(OLD + NEW), step
    assert refused > 0
