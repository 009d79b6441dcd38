"""The search for the first events of a range, if cursors are refused or a signal ends it."""

import logging
import threading
from signal import SIGTERM
from typing import Any

import pytest

from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.exceptions import CursorRefusedError, StoppedError
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.run.first_instants import first_instants
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.run.searches import search_each
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.service.rate_limiter import RateLimiter
from tests.builders import an_event

ALL = Window(None, Instant("2024-05-07T00:00:00"))


def found(
    settings: dict[str, Any], window: Window, order: str, runtime: Runtime | None = None
) -> list[Instant]:
    """The times of the first two events."""
    ((_, (instants, _)),) = search_each(
        read_settings(settings),
        lambda client: first_instants(2, client, window, order),
        runtime=runtime or Runtime(),
        logger=logging.getLogger("first"),
    )
    return instants


@pytest.mark.parametrize(
    ("order", "end"), [("asc", "2024-05-07T00:00:00"), ("desc", "2024-05-06T07:00:00.5")]
)
def test_a_refused_cursor_ends_the_search_if_it_cannot_continue(
    order: str, end: str, service: Service, settings: dict[str, Any]
) -> None:
    """The oldest time found is not where ``asc`` ended; or no event of the range was found yet."""
    service.add([an_event(id=f"{n}", at=f"2024-05-06T07:00:00.{n}Z") for n in range(1, 9)])
    service.add_faults([Fault.parse("short:events=1@1"), Fault.parse("expire@2")])
    with pytest.raises(CursorRefusedError):
        found(settings, Window(None, Instant(end)), order)


@pytest.mark.parametrize("hangs", [True, False])
def test_a_signal_ends_the_thread_that_searches(
    hangs: bool, service: Service, settings: dict[str, Any]
) -> None:
    """This holds while a response is awaited, and during the wait before a retry."""
    stop = Stop()

    def stops(*_: object) -> bool:
        stop.request(SIGTERM)
        return True

    class StoppedByPause(RateLimiter):
        def pause(self, seconds: float) -> None:
            stops()
            super().pause(seconds)

    fault = Fault(kind="hang", seconds=600, only=stops)
    if not hangs:
        fault = Fault(kind="status", code=503, retry_after="600", when="1")
    service.add_faults([fault])
    before = set(threading.enumerate())
    with pytest.raises(StoppedError):
        found(settings, ALL, "asc", Runtime(stop=stop, new_rate_limiter=StoppedByPause))
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=30)
        assert not thread.is_alive()
