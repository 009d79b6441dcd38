"""A small STATE is written at each page, a large one by time or by its share of the output."""

import pytest
from singer_sdk.singerlib import StateMessage

from tap_audit_events.output import SMALL_STATE_BYTES, STATE_INTERVAL_SECONDS, STATE_SHARE
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


def test_the_first_state_is_due_at_once(writer: MessageWriter) -> None:
    assert writer.state_is_due


@pytest.mark.parametrize("size", [100, SMALL_STATE_BYTES])
def test_a_small_state_is_always_due(size: int, writer: MessageWriter) -> None:
    """It is due even if nothing was written and no time has passed since the last one."""
    writer.write_message(state_of(size))
    assert writer.state_is_due


@pytest.mark.parametrize("size", [SMALL_STATE_BYTES + 1, 1_000_000])
def test_a_large_state_is_due_every_five_seconds(
    size: int, writer: MessageWriter, clock: Clock
) -> None:
    """The time counts from the last STATE, however few records were written since."""
    assert STATE_INTERVAL_SECONDS == 5
    for letter in "abc":
        writer.write_message(state_of(size, letter))
        written_at = clock.now
        for seconds, is_due in ((0.0, False), (4.9, False), (5.0, True), (60.0, True)):
            clock.now = written_at + seconds
            assert writer.state_is_due == is_due


def test_a_large_state_is_due_when_enough_was_written(writer: MessageWriter) -> None:
    """It is due after ten times its size, so that STATE is at most a tenth of the output."""
    assert STATE_SHARE == 0.1
    writer.write_message(state_of(5000))
    while writer._bytes_since_state < 50_000:
        assert not writer.state_is_due
        writer._write(b"x" * 999 + b"\n")
    assert writer._bytes_since_state == 50_000
    assert writer.state_is_due
    writer.write_message(state_of(5000, "y"))
    assert not writer.state_is_due
