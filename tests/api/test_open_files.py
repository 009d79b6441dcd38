"""A run closes its connections itself: none waits for the garbage collector."""

import gc
import os
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from stat import S_ISSOCK
from typing import Any

import pytest

from tap_audit_events import AuditEvents
from tap_audit_events.errors.exceptions import RetryableError
from tap_audit_events.sandbox import Service
from tests.api.logs import ends_its_threads, events

RUNS = 100


@pytest.fixture(autouse=True)
def leaves_no_connection() -> Iterator[None]:
    """Switch the collector off; the test must leave no connection."""
    before = connections()
    gc.disable()
    yield
    left = connections() - before
    gc.enable()
    assert left == set()


def connections() -> set[tuple[str, int]]:
    """The local addresses of the TCP sockets that this process has opened, without listeners."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # it has just been closed
            if S_ISSOCK(os.fstat(int(path.name)).st_mode):
                with socket.socket(fileno=os.dup(int(path.name))) as sock:
                    if sock.family == socket.AF_INET:
                        found.add(sock.getsockname())
    return found


def test_no_connection_is_left_after_a_hundred_runs_that_are_closed_early(
    service: Service, settings: dict[str, Any]
) -> None:
    """Requests in flight end with the run, and their threads close the connections."""
    service.add(events(0, 200))
    log = AuditEvents(**settings, page_size=5)
    with ends_its_threads():
        for _ in range(RUNS):
            with closing(log.pages()) as pages:
                assert len(list(islice(pages, 2))) == 2


@pytest.mark.parametrize("fault", ["status:code=503", "cut:bytes=100", "hang:seconds=600"])
def test_no_connection_is_left_after_a_hundred_runs_that_fail(
    fault: str, service: Service, settings: dict[str, Any]
) -> None:
    """The responses are errors, are cut, or arrive too late; the error itself is kept."""
    service.add(events(0, 30))
    service.add_faults([f"{fault}@*"])
    log = AuditEvents(**settings, max_retries=0, request_timeout_seconds=0.03)
    errors = []
    with ends_its_threads():
        for _ in range(RUNS):
            with pytest.raises(RetryableError) as raised:
                list(log.pages())
            errors.append(raised.value)
