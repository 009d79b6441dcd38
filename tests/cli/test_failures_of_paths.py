"""Paths that an export cannot or must not write to are refused, with one line each."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tap_audit_events.outputs import formats
from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.failing import EVENTS, refused

GONE = ("sh", "-c", 'mkdir gone && cd gone && rmdir "$PWD" && exec "$@"', "sh")


@pytest.mark.parametrize("to", ["a.duckdb", "a.parquet"])
def test_a_file_of_another_kind_is_not_extended(
    to: str, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    path = command.folder / to
    path.write_text("not what its name says" * 100)
    if to == "a.parquet":
        state = {"version": 1, "output": to, "bytes": path.stat().st_size, "state": {}}
        (command.folder / "s.json").write_text(json.dumps(state))

    refused(command("export", "--to", to, "--state", "s.json"))

    assert path.read_text() == "not what its name says" * 100
    assert command.left_over == []


@pytest.mark.parametrize(
    ("to", "kinds"),
    [
        ("mysql://u:SeCr3tPw@db/w", formats.TABLES),
        ("postgresql:/u:SeCr3tPw@db/w", formats.FORMATS),
        ("u:SeCr3tPw@db/w", formats.FORMATS),
    ],
)
def test_a_url_of_an_unknown_kind_is_not_shown(
    to: str, kinds: Iterable[str], command: Command
) -> None:
    """The URL may contain a password, so the error only names the kinds."""
    error = refused(command("export", "--to", to))

    assert all(each in error for each in kinds)
    assert "@db" not in error
    assert "SeCr3tPw" not in error


@pytest.mark.parametrize("prefix", formats.TABLES)
def test_options_that_a_table_does_not_have_are_refused(prefix: str, command: Command) -> None:
    done = command("export", "--to", f"{prefix.upper()}db/w", "--state", "s.json")
    assert "--state is for files" in refused(done)
    done = command("export", "--to", "a.jsonl", "--table", "raw.events")
    assert "--table names a table of PostgreSQL" in refused(done)


@pytest.mark.parametrize("to", ["events", "events.xlsx", ".parquet"])
def test_an_unknown_suffix_lists_the_formats(to: str, command: Command) -> None:
    error = refused(command("export", "--to", to))

    for form, each in formats.FORMATS.items():
        assert f"{form} ({each.meaning})" in error


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("export", "--to", "a.jsonl"), "AE-EXPORT"),
        (("verify", "--against", "a.jsonl"), "AE-LOADED"),
        (("verify", "--against", "/nowhere.jsonl", "--list", "a"), "AE-EXPORT"),
    ],
)
def test_a_path_that_cannot_be_resolved_is_reported_in_one_line(
    arguments: tuple[str, ...], code: str, command: Command
) -> None:
    """The working directory is gone, or the path links to itself (refused before Python 3.13)."""
    refused(command.under(GONE, *arguments), code)
    (command.folder / arguments[-1]).symlink_to(arguments[-1])
    if sys.version_info < (3, 13):
        refused(command(*arguments), code)


@pytest.mark.parametrize(
    ("path", "problem"),
    [("", "the path is empty"), ("s3://key:secret@bucket/a", "it must be a path, not a URL")],
)
@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "--to", "a.jsonl", "--state"),
        ("verify", "--against", "a.jsonl", "--list"),
        ("verify", "--against", "a.jsonl", "--repair"),
    ],
)
def test_an_option_that_is_not_a_path_is_named(
    arguments: tuple[str, ...], path: str, problem: str, command: Command
) -> None:
    """The value is empty, as from an unset variable, or a URL, whose password is not shown."""
    done = command(*arguments, path)

    assert f"Error: Invalid value for '{arguments[-1]}': {problem}" in done.log
    assert "secret" not in done.log
    assert done.exit_code == 2


@pytest.mark.parametrize(("option", "value"), [("--to", "a.parquet"), ("--state", "b")])
def test_one_export_has_one_output_and_one_state(option: str, value: str, command: Command) -> None:
    """If two were accepted, only the last would be used, and the exit code would be 0."""
    done = command("export", "--to", "a.jsonl", "--state", "a", option, value)

    assert f"Error: Invalid value for '{option}': give it once" in done.log
    assert done.exit_code == 2


@pytest.mark.parametrize(
    ("to", "state", "needed_by"),
    [
        ("events.jsonl", ["--state", "s.json"], "a state file"),
        ("events.duckdb", [], "DuckDB"),
    ],
)
def test_a_path_that_is_not_utf_8_is_refused_before_anything_is_read(
    to: str, state: list[str], needed_by: str, service: Service, command: Command
) -> None:
    done = command("export", "--to", f"\udcff{to}", *state)

    assert f"is not UTF-8, which {needed_by} needs: choose another one" in refused(done)
    assert not service.requests
    assert list(command.folder.iterdir()) == []


def test_a_folder_with_something_in_it_is_not_replaced(service: Service, command: Command) -> None:
    service.add(EVENTS)
    (command.folder / "days").mkdir()
    (command.folder / "days" / "mine.txt").write_text("mine")

    assert "is not empty, it has 'mine.txt': give --state with its state file" in refused(
        command("export", "--to", "days/")
    )
    assert [path.name for path in command.folder.rglob("*.*")] == ["mine.txt"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--to", "pipe.jsonl"),
        ("--to", "a.jsonl", "--state", "pipe.jsonl"),
    ],
)
def test_a_pipe_or_a_device_is_not_an_output(
    arguments: tuple[str, ...], service: Service, command: Command
) -> None:
    """Opening it would wait forever, and replacing it would break other programs."""
    for name in ("pipe.jsonl", "pipe.duckdb"):
        os.mkfifo(command.folder / name)

    done = command("export", *arguments)

    assert f"{arguments[-1]}' exists, but is not a file: give another path" in refused(done)
    assert not service.requests


@pytest.mark.parametrize("to", ["a.parquet", "a.duckdb"])
def test_the_error_of_a_missing_library_names_the_extra(
    to: str, service: Service, command: Command, tmp_path: Path
) -> None:
    """JSON Lines needs no extra."""
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    for name in ("pyarrow", "duckdb"):
        (blocked / f"{name}.py").write_text("raise ImportError")
    environment = ["env", f"PYTHONPATH={blocked}:{Path(__file__).parents[2]}"]

    error = refused(command.under(environment, "export", "--to", to), "AE-EXTRA")

    assert f", of the extra [{'arrow' if to == 'a.parquet' else 'duckdb'}], " in error
    done = command.under(environment, "export", "--to", "a.jsonl")
    assert done.exit_code == 0, done.log
