"""`audit-events count`: exact counts by day, action type and actor."""

import csv
import io
import json
from collections import Counter
from datetime import UTC, datetime

import pytest

from tap_audit_events.cli.count import OTHERS, Counts
from tap_audit_events.sandbox import Fault, Service, generate
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import HOSTILE
from tests.outputs.opened import page_of

EVENTS = generate(2500, days=9, seed=7, until=datetime(2026, 1, 15, 12, tzinfo=UTC))

BY = {
    "day": lambda event: event["occurredAt"][:10],
    "action": lambda event: event["action"]["type"],
    "actor": lambda event: (event["actor"]["type"], event["actor"]["id"]),
}


@pytest.mark.parametrize("by", BY)
def test_counts_are_exact(by: str, service: Service, command: Command) -> None:
    """Each format shows the same counts: days by date, other groups by size."""
    service.add(EVENTS)
    expected = Counter(map(BY[by], EVENTS))

    shown = {
        name: command("count", "--by", by, "--format", name).raise_for_exit_code()
        for name in ("json", "csv", "table")
    }

    rows = json.loads(shown["json"].stdout)
    names = [tuple(row.values())[:-1] for row in rows]
    found = {
        name if by == "actor" else name[0]: row["events"]
        for name, row in zip(names, rows, strict=True)
    }
    assert found == expected
    order = names if by == "day" else [-row["events"] for row in rows]
    assert order == sorted(order)
    table = [
        list(row.values()) for row in csv.DictReader(io.StringIO(shown["csv"].stdout.decode()))
    ]
    assert table == [[*map(str, row.values())] for row in rows]
    first, *lines = shown["table"].lines
    assert first.split() == list(rows[0])
    assert [line.split() for line in lines] == [
        [*map(str, list(row.values())[:-1]), f"{row['events']:,}"] for row in rows
    ]
    assert shown["json"].log.startswith("Counted: 2,500 events in ")


@pytest.mark.parametrize("by", BY)
def test_unexpected_values_are_counted_too(by: str, service: Service, command: Command) -> None:
    """Some types are not text, and an id has characters that would control a terminal."""
    hostile = [*HOSTILE, an_event(id="7", actor={"type": "user", "id": "\x1b[2J"}, context=[])]
    service.add(hostile)

    rows = json.loads(command("count", "--by", by, "--format", "json").stdout)
    table = command("count", "--by", by).raise_for_exit_code()

    assert sum(row["events"] for row in rows) == len(hostile)
    assert b"\x1b" not in table.stdout
    if by == "action":
        assert {row["action_type"]: row["events"] for row in rows} == {
            "workspace_create": 5, "t": 1, "5": 1,
        }  # fmt: skip


def test_csv_preserves_any_name(service: Service, command: Command) -> None:
    """The names have line breaks, commas, quotes and spaces, or could be formulas."""
    names = {"a\nb", "a\rb", "\r\n", 'a","b', " a ", "=1", "-1", "'=1"}
    service.add([an_event(id=f"{n}", action_type=name) for n, name in enumerate(names)])

    text = command("count", "--by", "action", "--format", "csv").raise_for_exit_code().stdout

    rows = csv.DictReader(io.StringIO(text.decode(), newline=""))
    found = {row["action_type"] for row in rows}
    assert {"'=1", "'-1", "''=1"} <= found
    assert {name.removeprefix("'") for name in found} == names


def test_without_events_there_are_no_rows(command: Command) -> None:
    assert command("count", "--by", "day").raise_for_exit_code().lines == ["day  events"]
    assert command("count", "--by", "day", "--format", "json").stdout == b"[]\n"


def test_after_an_error_no_counts_are_shown(service: Service, command: Command) -> None:
    """Counts of some of the events would look like counts of all."""
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=403@2")])

    done = command("count", "--by", "day")

    assert (done.exit_code, done.stdout) == (1, b"")
    assert done.error.startswith("AE-403: ")


@pytest.mark.parametrize("bound", [{"most_groups": 3}, {"most_bytes": 3 * len('"event_00"')}])
def test_groups_beyond_a_limit_are_counted_together(bound: dict[str, int]) -> None:
    """The counts of the first groups are exact, and each event is counted."""
    events = [an_event(id=f"{n}", action_type=f"event_{n % 10:02}") for n in range(100)]
    counts = Counts("action", **bound)
    for start in range(0, 100, 7):
        counts.add(page_of(events[start : start + 7]))

    assert counts.rows() == [
        {"action_type": "event_00", "events": 10},
        {"action_type": "event_01", "events": 10},
        {"action_type": "event_02", "events": 10},
        {"action_type": OTHERS, "events": 70},
    ]
