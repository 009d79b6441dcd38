"""Helpers for the tests of failing exports."""

import logging
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tap_audit_events.outputs.formats import format_of, open_output
from tap_audit_events.outputs.output import Output
from tap_audit_events.outputs.state_file import StateFile
from tests.cli.command import Done
from tests.cli.exported import history

EVENTS = history(100)


SMALL_PAGES = {"TAP_AUDIT_EVENTS_PAGE_SIZE": "10", "TAP_AUDIT_EVENTS_CONCURRENCY": "1"}


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


def open_incremental(folder: Path, to: str) -> Output:
    path = folder / to
    state_file = StateFile(folder / "s.json", path)
    return open_output(format_of(to), path, state_file, logging.getLogger(__name__))
