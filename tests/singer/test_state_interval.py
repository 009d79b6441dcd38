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


def test_a_small_state_is_always_due(writer: MessageWriter) -> None:
    """It is due even if nothing was written and no time has passed since the last one."""
    assert writer.state_is_due
    writer.write_message(state_of(SMALL_STATE_BYTES))
    assert writer.state_is_due


def test_a_large_state_is_due_every_five_seconds(writer: MessageWriter, clock: Clock) -> None:
    """The time counts from the last STATE, however few records were written since."""
    writer.write_message(state_of(SMALL_STATE_BYTES + 1))
    clock.now += STATE_INTERVAL_SECONDS - 0.1
    assert not writer.state_is_due
    clock.now += 0.2
    assert writer.state_is_due


def test_a_large_state_is_due_when_enough_was_written(writer: MessageWriter) -> None:
    """It is due after ten times its size, so that STATE is at most a tenth of the output."""
    writer.write_message(state_of(5000))
    texts = [b"x" * 1000]
    writer.write_records("audit_events", 40 * texts, datetime.now(UTC))
    assert not writer.state_is_due
    writer.write_records("audit_events", 10 * texts, datetime.now(UTC))
    assert writer.state_is_due
