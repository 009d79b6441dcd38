"""An output of chosen events gets each of them once, and never others."""

from typing import Any

import pytest

from tap_audit_events.cli.selection import Selection
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.events.event_filter import EventFilter
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import Event, expected, history
from tests.cli.failing import refused
from tests.outputs.kind import Kind
from tests.outputs.kinds import KINDS

JANE = ("--actor", "JANE@example.com", "--entity", "w-1")


@pytest.fixture
def output(request: pytest.FixtureRequest, command: Command) -> Kind:
    """A new output of the kind of a row."""
    created: Kind = request.param(request, command)
    return created


each_kind = pytest.mark.parametrize("output", KINDS, indirect=True)


def some_of_jane(start: int) -> list[Event]:
    """Events of which each third was caused by Jane."""
    jane = {"type": "user", "id": "j", "email": "jane@example.com"}
    return [
        each | ({"actor": jane} if number % 3 == 0 else {})
        for number, each in enumerate(history(60, start))
    ]


def of_jane(events: list[Event]) -> list[Event]:
    return expected(each for each in events if each["actor"]["id"] == "j")


@each_kind
def test_each_run_adds_the_new_events_that_match(output: Kind, service: Service) -> None:
    """A run that reads only other events has a newer state, so the next one starts behind them."""
    first, second = some_of_jane(10), some_of_jane(500)
    few = {"TAP_AUDIT_EVENTS_PAGE_SIZE": "7"}
    service.add(history(10))
    output.export(*JANE, **few).raise_for_exit_code()
    assert output.events() == []
    assert "AE-STATE" in output.export().log
    service.add(first)
    done = output.export(*JANE, **few).raise_for_exit_code()
    assert done.log.startswith(f"Added to {output.name}: 20 events in ")
    service.add(history(100, start=100))
    done = output.export(*JANE, **few).raise_for_exit_code()
    assert done.log.startswith(f"Nothing new for {output.name}: 0 events in ")
    service.add(second)
    requests = len(service.requests)
    output.export(*JANE[2:], *JANE[:2], **few).raise_for_exit_code()

    assert output.events() == of_jane(first + second)
    assert service.requests[requests].params["startTime"] > "2024-05-10"
    assert output.left_over == []


@each_kind
@pytest.mark.parametrize(
    ("before", "now", "difference"),
    [
        (JANE, (), "with '--actor JANE@example.com --entity w-1', which this run lacks"),
        ((), JANE, "without '--actor JANE@example.com --entity w-1'"),
        (JANE, JANE[:2], "w-1', not with '--actor JANE@example.com'"),
    ],
)
def test_a_run_with_other_filters_is_refused_and_changes_nothing(
    before: tuple[str, ...], now: tuple[str, ...], difference: str, output: Kind, service: Service
) -> None:
    service.add(some_of_jane(0))
    output.export(*before).raise_for_exit_code()
    service.add(some_of_jane(100))
    exported, requests = output.snapshot(), len(service.requests)

    done = output.export(*now)

    assert f"{difference}. Use the same options again" in refused(done, "AE-STATE")
    assert output.snapshot() == exported
    assert len(service.requests) == requests


def test_a_file_stays_if_no_new_event_matches(command: Command, service: Service) -> None:
    """Only the state changes: the next run does not read the other events again."""
    run = ("export", "--to", "e.jsonl", "--state", "s.json", "--actor", "user-2")
    service.add([*history(10), an_event(id="x", actor={"id": "user-2"})])
    command(*run).raise_for_exit_code()
    before = (command.folder / "e.jsonl").stat()
    state = (command.folder / "s.json").read_text()
    service.add(history(10, start=100))
    command(*run).raise_for_exit_code()

    assert (command.folder / "e.jsonl").stat() == before
    assert (command.folder / "s.json").read_text() != state


@pytest.mark.parametrize(
    "state", [{}, {"bookmark": "x"}, {"organizations": [{"bookmark": "x"}, {"bookmark": "y"}]}]
)
def test_the_state_of_each_organization_has_the_selection(state: dict[str, Any]) -> None:
    """Some outputs store the state of each organization on its own."""
    selection = Selection(EventFilter.of(["b", "a"], []))
    stored = selection.added_to(state)

    assert selection.continued(stored, "e") == state
    for each in stored.get("organizations", [stored] if stored else []):
        assert each["filters"] == {"actor": ["a", "b"]}
        with pytest.raises(SettingsError, match="AE-STATE"):
            Selection().continued({"organizations": [state, each]}, "e")
    assert Selection().continued(state, "e") == Selection().added_to(state) == state


def test_a_selection_of_a_newer_version_is_refused() -> None:
    stored = {"bookmark": "x", "filters": {"color": ["red"]}}
    with pytest.raises(SettingsError, match="options that this version does not know"):
        Selection().continued(stored, "e")
