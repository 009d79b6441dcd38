"""`audit-events tail`: the newest events, and those that follow, each once."""

import json
from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import HOSTILE, history
from tests.cli.tailing import ids


@pytest.mark.parametrize(("n", "expected"), [("0", 0), ("1", 1), ("7", 7), ("1500", 1500)])
def test_the_newest_events_are_printed_in_ascending_order(
    n: str, expected: int, service: Service, command: Command
) -> None:
    events = history(3000)
    service.add(events)

    done = command("tail", "-n", n).raise_for_exit_code()

    assert ids(done.lines) == [each["id"] for each in events][3000 - expected :]
    assert len(service.requests) <= 2 + 1.25 * 2 + 4  # to find the first, and to read


def test_ten_events_are_the_default_and_a_large_number_prints_all(
    service: Service, command: Command
) -> None:
    service.add(history(100))
    assert ids(command("tail").lines) == [f"{n:05}" for n in range(90, 100)]
    assert len(command("tail", "-n", "100000").lines) == 100


def test_the_last_events_of_an_instant_are_printed_if_it_has_more_than_requested(
    service: Service, command: Command
) -> None:
    """Events of the same instant are in the service's order."""
    service.add([an_event(id=f"{n:03}") for n in range(50)])

    assert ids(command("tail", "-n", "3").lines) == ["047", "048", "049"]


@pytest.mark.parametrize("n", [1, 12, 100])
def test_excluded_events_do_not_count(n: int, service: Service, command: Command) -> None:
    """They are neither printed nor counted, also if most events are excluded."""
    shown = history(30)
    noise = [
        each | {"id": f"{each['id']}-{copy}", "action": {"type": "noise"}}
        for copy in range(50)
        for each in shown
    ]
    service.add([*shown, *noise])

    done = command("tail", "-n", str(n), TAP_AUDIT_EVENTS_EXCLUDE_ACTION_TYPES='["noise"]')

    assert ids(done.raise_for_exit_code().lines) == [each["id"] for each in shown][-n:]


def test_without_events_there_are_no_lines(command: Command) -> None:
    assert command("tail").raise_for_exit_code().stdout == b""


def test_events_are_printed_unchanged(service: Service, command: Command) -> None:
    service.add(HOSTILE)

    done = command("tail").raise_for_exit_code()

    assert [json.loads(line) for line in done.stdout.split(b"\n")[:-1]] == HOSTILE


SECONDS = [
    *(an_event(id=f"a{n:02}", at=f"2024-05-31T23:59:{n:02}Z") for n in range(60)),
    *(an_event(id=f"b{n:03}", at="2024-06-01T00:00:00Z") for n in range(500)),
]


@pytest.mark.parametrize("n", ["1", "1500"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--start", "2024-06-01T00:00:00Z"], SECONDS[60:]),  # requests begin a second before it
        (["--start", "2024-05-31T23:59:50.5Z", "--end", "2024-05-31T23:59:59Z"], SECONDS[51:60]),
        (["--end", "2024-05-31T23:59:59.999999999Z"], SECONDS[:60]),
        (["--end", "2024-05-31T23:59:00.5Z"], SECONDS[:1]),
    ],
)
def test_bounds_hold_although_requests_are_wider(
    options: list[str], expected: list[dict[str, Any]], n: str, service: Service, command: Command
) -> None:
    """Requests have whole seconds as bounds, so they may find many events outside of the range."""
    service.add(SECONDS)

    done = command("tail", "-n", n, *options).raise_for_exit_code()

    assert ids(done.lines) == [each["id"] for each in expected][-int(n) :]


def test_short_and_empty_pages_do_not_end_the_search(service: Service, command: Command) -> None:
    """A page may have fewer events than were requested."""
    service.add(history(300))
    service.add_faults([Fault.parse("short:events=7@1-44"), Fault.parse("empty@5,9-20")])

    done = command("tail", "-n", "200").raise_for_exit_code()

    assert len(done.lines) == 200


def test_a_refused_cursor_does_not_end_the_search(service: Service, command: Command) -> None:
    """Several events share each instant, also at the end of a page."""
    events = [an_event(id=f"{n:05}", at=f"2024-05-06T{n // 400:02}:00:00Z") for n in range(5000)]
    service.add(events)
    service.add_faults([Fault.parse("expire@2,4")])

    done = command("tail", "-n", "2500").raise_for_exit_code()

    assert ids(done.lines) == [each["id"] for each in events][-2500:]
