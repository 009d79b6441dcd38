"""Helpers that read events with `AuditEvents` and store its states."""

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from tap_audit_events import AuditEvents, EventPage
from tests.builders import an_event

WAIT_SECONDS = 15
COUNT = 150


def events(first: int, end: int) -> list[dict[str, Any]]:
    """One event each second, from the first number up to, but not including, the end."""
    return [
        an_event(id=f"{n:05}", at=f"2024-05-06T{7 + n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z")
        for n in range(first, end)
    ]


def ids(pages: Iterable[EventPage]) -> list[str]:
    return [event["id"] for page in pages for event in page.events]


def expected(count: int = COUNT) -> list[str]:
    """The ids of the first events that `events` creates."""
    return [f"{n:05}" for n in range(count)]


def stored(state: dict[str, Any] | None) -> dict[str, Any] | None:
    """A state after it was stored as JSON and read again."""
    loaded: dict[str, Any] | None = json.loads(json.dumps(state))
    return loaded


def first_pages(
    log: AuditEvents, count: int, state: dict[str, Any] | None
) -> tuple[list[str], dict[str, Any] | None]:
    """Read some pages as a caller that then crashes, and return their ids and the last state."""
    found: list[str] = []
    with closing(log.pages(state=state)) as pages:
        for _, page in zip(range(count), pages, strict=False):
            found += ids([page])
            state = page.state
    return found, stored(state)


@contextmanager
def ends_its_threads() -> Iterator[None]:
    """Check that each thread that the block starts ends soon after the block."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive(), thread
