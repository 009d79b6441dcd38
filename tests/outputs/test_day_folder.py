"""Exports that write to the same folder at the same time, each with a state file of its own."""

from pathlib import Path

import pytest

from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.outputs.output import Output
from tests.cli.exported import Event, expected, exported, history
from tests.outputs.opened import new_output, page_of, write_and_commit

OLD, NEW, OTHERS = history(10), history(20, start=10), history(20, start=30)


def output(folder: Path, state: str) -> Output:
    (folder / state).parent.mkdir(exist_ok=True)
    return new_output(folder, "events/", state)


def export(folder: Path, state: str, events: list[Event]) -> None:
    each = output(folder, state)
    each.begin()
    write_and_commit(each, events)


@pytest.mark.parametrize("ends_first", [True, False])
def test_two_runs_do_not_take_each_others_files(ends_first: bool, tmp_path: Path) -> None:
    """Each run has a hidden folder of its own, even if their state files have the same name."""
    export(tmp_path, "a/state.json", OLD)
    (tmp_path / "events").rename(tmp_path / "moved")
    export(tmp_path, "b/state.json", [])
    first, second = output(tmp_path, "a/state.json"), output(tmp_path, "b/state.json")

    first.begin()
    first.write(page_of(NEW))
    second.begin()
    second.write(page_of(OTHERS))
    for each in (first, second) if ends_first else (second, first):
        each.commit({"of": "it"})

    assert expected(exported(tmp_path / "events")) == expected([*NEW, *OTHERS])
    assert list((tmp_path / "events").glob(".*")) == []


def test_a_first_run_does_not_add_to_files_that_another_run_wrote_meanwhile(tmp_path: Path) -> None:
    """The first run does not know what the folder contains, and would add the same events again."""
    first, second = output(tmp_path, "a.json"), output(tmp_path, "b.json")
    first.begin()
    first.write(page_of(OLD))
    second.begin()
    second.write(page_of(OLD))
    second.commit({"of": "b"})

    with pytest.raises(SettingsError, match="so it is not known which events are new"):
        first.commit({"of": "a"})
    first.discard()

    assert expected(exported(tmp_path / "events")) == expected(OLD)
    assert list((tmp_path / "events").glob(".*")) == []
    assert not (tmp_path / "a.json").exists()
