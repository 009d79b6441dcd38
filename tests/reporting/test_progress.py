"""The log line about the progress of a run."""

import pytest

from tap_audit_events.events.instants import Instant, parse_instant
from tap_audit_events.events.window import Window
from tap_audit_events.reporting.progress import PROGRESS_SECONDS, Progress

START = parse_instant("2026-01-01T00:00:00Z")
QUARTER = parse_instant("2026-01-02T00:00:00Z")
END = parse_instant("2026-01-05T00:00:00Z")


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def line_of(progress: Progress, delivered: int, reached: Instant | None) -> str:
    return progress.log_line(delivered=delivered, reached=reached, requests=7, retries=2)


def test_a_line_is_due_every_ten_seconds() -> None:
    """It is not due earlier, and only once after a long pause."""
    clock = Clock()
    progress = Progress(Window(START, END), clock)
    due = []
    for second in range(1, 26):
        clock.seconds = 1000.0 + second
        due += [second] if progress.is_due(PROGRESS_SECONDS) else []
    assert due == [10, 20]
    clock.seconds += 5 * PROGRESS_SECONDS
    assert [progress.is_due(10.0), progress.is_due(10.0)] == [True, False]


@pytest.mark.parametrize("start", [START, None])
def test_the_line_shows_position_rate_and_remaining_time(start: Instant | None) -> None:
    """A range without a start begins at the first event."""
    clock = Clock()
    progress = Progress(Window(start, END), clock)
    progress.set_first_instant(START)
    progress.set_first_instant(QUARTER)
    clock.seconds += 20
    assert line_of(progress, 5000, QUARTER) == (
        "5000 events, 250 a second; reached 2026-01-02T00:00:00Z, 25% of the range,"
        " 0:01:00 to go; requests: 7, retries: 2"
    )


def test_unknown_values_are_left_out() -> None:
    """Before the first event, there is no position, no share and no remaining time."""
    clock = Clock()
    progress = Progress(Window(None, END), clock)
    line = "0 events, 0 a second; requests: 7, retries: 2"
    assert line_of(progress, 0, None) == line
    progress.set_first_instant(START)
    clock.seconds += 10
    assert "reached 2026-01-01T00:00:00Z, 0% of the range; requests: 7" in line_of(
        progress, 1, START
    )
    only_end = Progress(Window(END, END), clock)
    assert "reached" not in line_of(only_end, 1, END)
