"""A small STATE is written at each page, a large one by time or by its share of the output."""

from datetime import UTC, datetime

import pytest
from singer_sdk.singerlib import StateMessage

from tap_audit_events.reporting.stdout import SMALL_STATE_BYTES, STATE_INTERVAL_SECONDS
from tap_audit_events.singer.messages import MessageWriter


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def writer(clock: Clock, capfdbinary: pytest.CaptureFixture[bytes]) -> MessageWriter:
    return MessageWriter(clock)


def state_of(size: int, letter: str = "x") -> StateMessage:
    """A STATE whose line has `size` bytes."""
    empty = len(b'{"type":"STATE","value":{"bookmarks":""}}\n')
    return StateMessage(value={"bookmarks": letter * (size - empty)})


def test_a_state_is_due_by_its_size_by_time_and_by_what_was_written(
    writer: MessageWriter, clock: Clock
) -> None:
    """A large one is due after ten times its size, or after five seconds."""
    due = []
    writer.write_message(state_of(SMALL_STATE_BYTES))
    due.append(writer.state_is_due)
    writer.write_message(state_of(SMALL_STATE_BYTES + 1))
    due.append(writer.state_is_due)
    clock.now += STATE_INTERVAL_SECONDS + 0.1
    due.append(writer.state_is_due)
    writer.write_message(state_of(5000))
    for count in (40, 10):
        writer.write_records("audit_events", count * [b"x" * 1000], datetime.now(UTC))
        due.append(writer.state_is_due)
    assert due == [True, False, True, False, True]
