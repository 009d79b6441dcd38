"""One gate for every thread that sends requests."""

import threading
import time
from collections.abc import Callable

import pytest

from tap_audit_events.service.rate_limiter import ClosedError, Gate

LONG = 3600.0


def in_threads(count: int, work: Callable[[], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def all_end(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()


def is_ended_while_it_pauses(gate: Gate) -> None:
    with pytest.raises(ClosedError):
        gate.pause(LONG)


class Counting:
    """How many are inside at a time."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1


def test_no_more_than_the_limit_are_under_way() -> None:
    """However many threads there are; each gets its turn, and failures give theirs back."""
    gate, inside = Gate(3), Counting()

    def work() -> None:
        for number in range(40):
            try:
                with gate.turn() as turn, inside:
                    time.sleep(0.0005)
                    if number % 7 == 0:
                        raise ValueError
                    turn.is_good = True
            except ValueError:
                pass

    all_end(in_threads(10, work))
    assert inside.total == gate.requests == 400
    assert inside.most == 3


def test_a_refusal_holds_every_thread() -> None:
    """While one waits out what the service asked for, no other sends; then all go on."""
    gate = Gate(8)
    started: list[float] = []
    held = threading.Event()

    def work() -> None:
        held.wait()
        with gate.turn() as turn:
            started.append(time.monotonic())
            turn.is_good = True

    threads = in_threads(8, work)
    with gate.turn() as turn:
        gate.hold(turn, 0.3)
        free_at = time.monotonic() + 0.29
        held.set()
    all_end(threads)
    assert len(started) == 8
    assert min(started) >= free_at
    assert (gate.retries, gate.waited_seconds) == (1, 0.3)


def test_a_pause_is_for_one_request_only() -> None:
    """Others are sent meanwhile."""
    gate = Gate(2)
    paused = in_threads(1, lambda: is_ended_while_it_pauses(gate))
    while not gate.retries:
        time.sleep(0.001)
    with gate.turn() as turn:
        turn.is_good = True
    assert paused[0].is_alive()
    gate.close()
    all_end(paused)


def test_a_pause_takes_no_turn_from_another_thread() -> None:
    """What wakes a thread that waits for its turn is not lost on one that waits for time."""
    gate = Gate(1)
    paused = in_threads(1, lambda: is_ended_while_it_pauses(gate))
    while not gate.retries:
        time.sleep(0.001)

    def work() -> None:
        for _ in range(20):
            with gate.turn() as turn:
                time.sleep(0.0005)
                turn.is_good = True

    all_end(in_threads(6, work))
    assert gate.requests == 120
    gate.close()
    all_end(paused)


def test_closing_ends_every_wait() -> None:
    """A wait for a turn, for the end of a hold, and a pause; nothing is sent afterwards."""
    gate = Gate(2)
    ended = Counting()

    def wait_for_a_turn() -> None:
        with pytest.raises(ClosedError), gate.turn():
            raise AssertionError("a turn was given")
        with ended:
            pass

    def pause() -> None:
        with pytest.raises(ClosedError):
            gate.pause(LONG)
        with ended:
            pass

    with gate.turn() as turn:
        gate.hold(turn, LONG)
        threads = [*in_threads(4, wait_for_a_turn), *in_threads(2, pause)]
        gate.close()
        all_end(threads)
    assert ended.total == 6
    assert gate.requests == 1
    with pytest.raises(ClosedError), gate.turn():
        raise AssertionError("a turn was given")


def test_a_turn_at_once_never_waits() -> None:
    """It is one of the turns: none beyond the limit, none in a hold, none when all is over."""
    gate = Gate(1)
    begun = gate.turn_at_once()
    assert begun is not None
    assert gate.turn_at_once() is None
    with gate.turn(begun) as turn:
        assert turn is begun
    assert gate.requests == 1
    gate.hold(begun, LONG)
    assert gate.turn_at_once() is None
    other = Gate(1)
    other.close()
    assert other.turn_at_once() is None


def test_a_turn_at_once_can_be_given_back() -> None:
    """A request that could not be sent, or whose answer nobody wants, is under way no more."""
    gate = Gate(1)
    begun = gate.turn_at_once()
    assert begun is not None
    gate.end(begun)
    assert gate.turn_at_once() is not None
