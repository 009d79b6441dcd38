"""Signals that arrive while the main thread is inside of a library."""

import os
import signal

import pytest

from tap_audit_events.errors.exceptions import StoppedError
from tap_audit_events.extraction.shutdown import SIGNALS, Stop, interrupting


def kill(number: signal.Signals = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_interrupts_the_block(number: signal.Signals) -> None:
    """After the block, the signal handlers from before are in place again."""
    before = [signal.getsignal(each) for each in SIGNALS]
    stop = Stop()

    with pytest.raises(StoppedError), interrupting(stop):
        kill(number)

    assert stop.signal_number == number
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_a_signal_from_before_the_block_counts_too() -> None:
    stop = Stop()
    stop.request(signal.SIGTERM)
    with pytest.raises(StoppedError), interrupting(stop):
        pytest.fail("it begins")


def test_an_error_that_a_library_raises_because_of_a_signal_is_replaced() -> None:
    """DuckDB, for example, raises RuntimeError with the text "Query interrupted"."""

    def query() -> None:
        try:
            kill()
        except StoppedError as error:
            raise RuntimeError from error

    with pytest.raises(StoppedError), interrupting(Stop()):
        query()


def test_a_signal_that_arrives_twice_does_not_interrupt_the_cleanup() -> None:
    """`timeout` sends its signal to the process and to its group."""
    cleaned_up = []

    def query() -> None:
        try:
            kill()
        finally:
            kill()
            cleaned_up.append(True)

    with pytest.raises(StoppedError), interrupting(Stop(clock=lambda: 0.0)):
        query()
    assert cleaned_up
