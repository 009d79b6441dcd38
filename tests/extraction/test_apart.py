"""A thread of its own delivers, and the main thread attends to signals."""

import signal
import threading
import traceback
from collections.abc import Callable, Iterator

import pytest

from tap_audit_events.errors.exceptions import StoppedError
from tap_audit_events.extraction.apart import run_apart
from tap_audit_events.extraction.shutdown import Stop

SECONDS = 30
"""Longer than anything here takes; a test that waits for so long has failed."""


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What a blocked piece of work waits for; set in the end, so that its thread ends too."""
    event = threading.Event()
    yield event
    event.set()


def nothing() -> None:
    """Nothing to do meanwhile."""


def later(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_the_work_is_done_when_it_returns() -> None:
    """In another thread."""
    done: list[threading.Thread] = []
    run_apart(lambda: done.append(threading.current_thread()), Stop(), nothing)
    assert done != [threading.main_thread()]
    assert len(done) == 1


def test_what_ended_the_work_is_raised_with_its_place() -> None:
    """As if it had been done here."""

    def fails() -> None:
        raise ValueError("here")

    with pytest.raises(ValueError, match="here") as caught:
        run_apart(fails, Stop(), nothing)
    assert "fails" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_a_wait_for_the_service_holds_no_stop(release: threading.Event) -> None:
    """What waits with nothing in hand is left to itself, and never has anything in hand again."""
    stop, waits = Stop(), threading.Event()
    delivered: list[str] = []

    def work() -> None:
        waits.set()
        release.wait(SECONDS)
        with stop.in_hand:
            delivered.append("too late")

    def ask() -> None:
        waits.wait(SECONDS)
        stop.ask(signal.SIGTERM)

    later(ask)
    with pytest.raises(StoppedError):
        run_apart(work, stop, nothing)
    assert not release.is_set()
    release.set()
    assert stop.in_hand.locked()
    assert not delivered


def test_a_stop_waits_for_what_is_in_hand(release: threading.Event) -> None:
    """It is whole when the stop goes on."""
    stop, began = Stop(), threading.Event()
    delivered: list[str] = []

    def work() -> None:
        with stop.in_hand:
            began.set()
            release.wait(SECONDS)
            delivered.append("whole")
        stop.check()

    def ask() -> None:
        began.wait(SECONDS)
        stop.ask(signal.SIGTERM)
        release.set()

    later(ask)
    with pytest.raises(StoppedError):
        run_apart(work, stop, nothing)
    assert delivered == ["whole"]


def test_the_main_thread_looks_around_while_nothing_is_in_hand(
    release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress is shown while the service does not answer, and never beside a delivery."""
    monkeypatch.setattr("tap_audit_events.extraction.apart.IDLE_SECONDS", 0.001)
    stop = Stop()
    seen: list[threading.Thread] = []

    def idle() -> None:
        assert stop.in_hand.locked()
        seen.append(threading.current_thread())
        release.set()

    run_apart(lambda: release.wait(SECONDS), stop, idle)
    assert seen[0] is threading.main_thread()
    assert not stop.in_hand.locked()


def test_nothing_is_delivered_after_an_interrupt(
    release: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no handler is set, as in a notebook, the interrupt strikes while it waits."""
    monkeypatch.setattr("tap_audit_events.extraction.apart.IDLE_SECONDS", 0.001)
    stop = Stop()

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_apart(lambda: release.wait(SECONDS), stop, interrupted)
    assert stop.in_hand.locked()
