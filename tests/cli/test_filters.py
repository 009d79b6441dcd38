"""`--actor` and `--entity` of `tail` and `count`: only events that match."""

from pathlib import Path

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import Event, history
from tests.cli.tailing import ended, following, ids, now, read, tail
from tests.shared_server import a_service

JANE = ("--actor", "Jane@example.com")


def by_jane(event: Event) -> Event:
    return event | {"actor": {"type": "user", "id": "j", "email": "jane@EXAMPLE.com"}}


RARE = [by_jane(each) if n % 700 == 5 else each for n, each in enumerate(history(3000))]
"""Jane caused the events 5, 705, 1405, 2105 and 2805."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("-n", "3"), ["01405", "02105", "02805"]),
        (("-n", "10"), ["00005", "00705", "01405", "02105", "02805"]),
        (("-n", "10", "--start", RARE[1500]["occurredAt"]), ["02105", "02805"]),
        (("-n", "2", "--end", RARE[2800]["occurredAt"]), ["01405", "02105"]),
        (("-n", "10", "--start", RARE[2900]["occurredAt"]), []),
        (("-n", "10", "--entity", "w-2"), []),
    ],
)
def test_tail_prints_the_newest_events_that_match(
    options: tuple[str, ...], expected: list[str], service: Service, command: Command
) -> None:
    service.add(RARE)
    done = command("tail", *JANE, *options).raise_for_exit_code()
    assert ids(done.lines) == expected


def test_a_refused_cursor_does_not_end_the_search(service: Service, command: Command) -> None:
    """No event of the pages before it matches."""
    service.add(RARE[:2101])
    service.add_faults([Fault.parse("expire@2")])
    done = command("tail", "--entity", "w-2", "-n", "2")
    assert ids(done.raise_for_exit_code().lines) == []


def test_tail_follows_events_that_match_in_several_organizations(tmp_path: Path) -> None:
    """Newer events of another organization do not take the place of those that match."""
    first, second = services = [a_service(number, 0) for number in range(2)]
    first.add([by_jane(now(5000, "a")), now(60, "b")])
    second.add([now(80, "c"), now(40, "d")])
    assert ids(tail(services, tmp_path, "-n", "1", *JANE).lines) == ["a"]
    with following(services, tmp_path, *JANE) as run:
        assert read(run, 1) == ["a"]
        first.add([now(20, "e"), by_jane(now(15, "f"))])
        second.add([by_jane(now(15, "g"))])
        assert sorted(read(run, 2)) == ["f", "g"]
        ended(run)


def test_follow_does_not_read_everything_again_if_no_event_matches(
    service: Service, command: Command
) -> None:
    service.add(history(3000))
    service.add_faults([Fault.parse("status:code=503@8")])  # of a check for new events
    with command.started("tail", "-f", "--interval", "0.1", *JANE) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        ended(run)
    ascending = [each.params for each in service.requests if each.params["order"] == "asc"]
    assert all(params["startTime"] > "2024" for params in ascending)


def test_count_counts_events_that_match(service: Service, command: Command) -> None:
    service.add([*RARE, by_jane(an_event(id="other", at="2024-09-01T00:00:00Z", entity={}))])
    done = command("count", "--by", "action", "--format", "csv", *JANE, "--entity", "w-1")
    assert done.raise_for_exit_code().lines == ["action_type,events", "workspace_create,5"]
    assert done.log.startswith("Counted: 5 events in ")


@pytest.mark.parametrize(("value", "problem"), [("", "is empty"), ("\udcff", "is not UTF-8")])
def test_a_value_that_cannot_match_is_refused(value: str, problem: str, command: Command) -> None:
    done = command("count", "--by", "day", "--entity", value)
    assert done.exit_code == 2
    assert f"the value {problem}" in done.log
