"""An export with a state file says why it refuses an output or a state, and changes neither."""

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tap_audit_events.errors.exceptions import OutputError, SettingsError
from tap_audit_events.outputs.durable import output_errors
from tap_audit_events.outputs.state_file import StateFile
from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.exported import EVERY_FORMAT, FORMATS, expected, exported
from tests.cli.failing import EVENTS, refused
from tests.outputs.opened import begun as begun_output
from tests.outputs.opened import page_of, write_and_commit


@pytest.fixture
def to() -> str:
    """The output of the tests that need only one format."""
    return "events.duckdb"


@pytest.fixture
def begun(to: str, service: Service, command: Command) -> Command:
    """The command, after an export of the first half of the events with a state file."""
    service.add(EVENTS[:50])
    command("export", "--to", to, "--state", state_of(to)).raise_for_exit_code()
    service.add(EVENTS[50:])
    return command


def state_of(to: str) -> str:
    return f"{to.strip('/')}.state.json"


@pytest.mark.parametrize("text", ["", '{"version": 1, "outp'])
def test_an_incomplete_state_file_is_refused(text: str, begun: Command, to: str) -> None:
    """An interrupted copy may leave it. To leave out --state would replace the output."""
    (begun.folder / state_of(to)).write_text(text)

    done = begun("export", "--to", to, "--state", state_of(to))

    assert done.error.endswith(": remove it, or put back what an earlier export wrote")


def test_an_error_names_the_state_file_if_it_cannot_be_replaced(tmp_path: Path) -> None:
    """A file that is mounted into a container cannot be replaced; a folder acts as one here."""
    (tmp_path / "s.json").mkdir()
    state_file = StateFile(tmp_path / "s.json", tmp_path / "a.jsonl")
    with pytest.raises(OutputError, match=r"s\.json'"), output_errors(tmp_path / "a.jsonl"):
        state_file.commit({}, [], 0)


def remove(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_a_new_output_gets_only_new_events_after_the_old_one_was_moved(
    to: str, begun: Command
) -> None:
    """Some users begin a new file each month in this way."""
    remove(begun.folder / to)

    done = begun("export", "--to", to, "--state", state_of(to)).raise_for_exit_code()

    (warning,) = done.warnings
    assert "has been moved or removed since the last export" in warning
    assert exported(begun.folder / to) == expected(EVENTS[50:])


@pytest.mark.parametrize("to", [to for to in FORMATS if to != "events.duckdb"])
def test_an_output_whose_state_file_is_gone_is_refused(to: str, begun: Command) -> None:
    remove(begun.folder / state_of(to))

    error = refused(begun("export", "--to", to, "--state", state_of(to)))

    assert "it is not known which events are new" in error
    assert exported(begun.folder / to) == expected(EVENTS[:50])


def test_a_table_continues_without_its_state_file(begun: Command) -> None:
    remove(begun.folder / state_of("events.duckdb"))

    for _ in range(2):  # the second time, nothing is new
        begun("export", "--to", "events.duckdb", "--state", "new.json").raise_for_exit_code()

        assert exported(begun.folder / "events.duckdb") == expected(EVENTS)
        remove(begun.folder / "new.json")


def test_a_table_whose_state_was_deleted_is_refused(begun: Command) -> None:
    """Without a state, every event would be written again."""
    with duckdb.connect(str(begun.folder / "events.duckdb")) as connection:
        connection.execute("DELETE FROM audit_events_state")

    error = refused(begun("export", "--to", "events.duckdb", "--state", state_of("events.duckdb")))

    assert "it is not known which events are new" in error


@pytest.mark.parametrize(
    "change",
    [
        "CREATE OR REPLACE TABLE audit_events AS SELECT * EXCLUDE id, id FROM audit_events",
        "ALTER TABLE audit_events ADD COLUMN note VARCHAR",
        "ALTER TABLE audit_events ALTER occurred_at TYPE TIMESTAMP",
    ],
)
def test_a_table_with_other_columns_is_refused(change: str, begun: Command) -> None:
    """Even if only the order differs, values would get into wrong columns.

    DuckDB would store times without a time zone in that of the machine.
    """
    with duckdb.connect(str(begun.folder / "events.duckdb")) as connection:
        connection.execute(change)

    error = refused(begun("export", "--to", "events.duckdb", "--state", state_of("events.duckdb")))

    assert "has other columns than this version writes" in error


@pytest.mark.parametrize("to", ["events.parquet", "events.jsonl", "events.jsonl.gz"])
def test_a_file_that_something_else_changed_is_refused(to: str, begun: Command) -> None:
    """An export without state also changes the file."""
    begun("export", "--to", to).raise_for_exit_code()

    error = refused(begun("export", "--to", to, "--state", state_of(to)))

    assert "something else has changed it" in error


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() * 2)


@pytest.mark.parametrize("to", ["events.parquet", "events.jsonl", "events.jsonl.gz"])
@pytest.mark.parametrize("change", [append, remove])
def test_a_file_that_something_else_changes_during_an_export_is_refused(
    change: Callable[[Path], None], to: str, tmp_path: Path
) -> None:
    """Events added meanwhile would be lost, and events moved away would be written twice."""
    path = tmp_path / to
    write_and_commit(begun_output(tmp_path, to), EVENTS[:50])
    output = begun_output(tmp_path, to)
    output.write(page_of(EVENTS[50:]))
    change(path)
    before = {each: each.read_bytes() for each in tmp_path.iterdir() if each.name[0] != "."}

    with pytest.raises(SettingsError, match="something else has"):
        output.commit({"until": "later"})
    output.discard()

    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_a_state_file_of_another_output_is_refused(to: str, begun: Command) -> None:
    other = f"other-{to}"

    error = refused(begun("export", "--to", other, "--state", state_of(to)), "AE-STATE")

    assert f"belongs to '{(begun.folder / to).resolve()}'" in error
    assert not (begun.folder / other).exists()


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_a_folder_with_output_and_state_can_be_moved(to: str, begun: Command) -> None:
    moved = Command(begun.folder.with_name("moved"), begun.settings)
    begun.folder.rename(moved.folder)

    moved("export", "--to", to, "--state", state_of(to)).raise_for_exit_code()

    assert exported(moved.folder / to) == expected(EVENTS)


def journal(pending: str) -> str:
    """A state file with a commit that was interrupted."""
    return (
        '{"version": 1, "output": "a.jsonl", "bytes": null, "state": {}, "pending": '
        + pending
        + "}"
    )


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("{}", "is not a state file of this command"),
        ('{"version": 2}', "was written by a newer version"),
        ('{"version": 1, "output": "a.jsonl", "bytes": null, "state": {"x": 1}}', "the watermark"),
        (journal('{"state": {}, "bytes": 1, "renames": [["a"]]}'), "is not a state file"),
    ],
)
def test_another_document_is_not_a_state_file(
    document: str, problem: str, command: Command
) -> None:
    (command.folder / "s.json").write_text(document)

    error = refused(command("export", "--to", "a.jsonl", "--state", "s.json"), "AE-STATE")

    assert problem.removeprefix("the ") in error
    assert (command.folder / "s.json").read_text() == document


@pytest.mark.parametrize("to", EVERY_FORMAT)
def test_a_state_of_another_organization_is_refused(to: str, begun: Command) -> None:
    other = {"TAP_AUDIT_EVENTS_ORGANIZATION_ID": "00000000-0000-4000-8000-000000000000"}

    error = refused(begun("export", "--to", to, "--state", state_of(to), **other), "AE-STATE")

    assert "belongs to the organization" in error
    assert "give each organization a state of its own. Nothing was added to " in error


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (["--start", EVENTS[50]["occurredAt"]], []),
        ([], ["--start", "9998-01-01T00:00:00Z"]),
        (["--config", "types.json"], []),
    ],
    ids=["start moved earlier", "start moved beyond the bookmark", "action types widened"],
)
def test_a_warning_of_a_gap_says_how_an_export_gets_the_events(
    first: list[str], then: list[str], service: Service, command: Command
) -> None:
    """A run without state would replace the output, and the next run with state would refuse it."""
    service.add(EVENTS)
    types = json.dumps({"action_types": [EVENTS[-1]["action"]["type"]]})
    (command.folder / "types.json").write_text(types)
    arguments = ("export", "--to", "a.jsonl", "--state", "s.json")
    command(*arguments, *first).raise_for_exit_code()

    done = command(*arguments, *then).raise_for_exit_code()

    assert [line for line in done.warnings if "export into a new output" in line]
