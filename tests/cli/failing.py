"""Helpers for the tests of failing exports."""

import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli.command import Done
from tests.cli.exported import Event, history

EVENTS = history(100)

SMALL_PAGES = {"TAP_AUDIT_EVENTS_PAGE_SIZE": "10", "TAP_AUDIT_EVENTS_CONCURRENCY": "1"}


def varied(count: int) -> list[Event]:
    """Events that cannot be compressed to almost nothing."""
    choose = random.Random(1)
    return [
        each | {"actor": {"type": "user", "id": choose.randbytes(200).hex()}}
        for each in history(count, start=100)
    ]


def refused(done: Done, code: str = "AE-EXPORT") -> str:
    assert done.exit_code == 1
    assert done.error.startswith(f"{code}: ")
    return done.error


@contextmanager
def full_disk(free_bytes: int = 0) -> Iterator[None]:
    """Within the block, no file can become larger than this number of bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
