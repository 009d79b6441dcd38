"""`AuditEvents` in threads, in asyncio and after an interruption: it leaves no threads behind."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from typing import Any

import pytest

from tap_audit_events import AuditEvents
from tap_audit_events.errors.exceptions import StoppedError
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.api.logs import WAIT_SECONDS, ends_its_threads, events, ids

COUNT = 400
HANGS_SECONDS = 600.0
EXPECTED = [f"{n:05}" for n in range(COUNT)]


@pytest.fixture
def log(service: Service, settings: dict[str, Any]) -> AuditEvents:
    service.add(events(0, COUNT))
    return AuditEvents(**settings, page_size=20, request_timeout_seconds=300)


def hang_from(service: Service, number: int) -> threading.Event:
    """Let the service hang from a request on; the event is set when it does."""
    hangs = threading.Event()

    def notes(request: ReceivedRequest) -> bool:
        if request.number >= number:
            hangs.set()
        return request.number >= number

    service.add_faults([Fault(kind="hang", seconds=HANGS_SECONDS, only=notes)])
    return hangs


def hold(service: Service, number: int) -> tuple[threading.Event, threading.Event]:
    """Hold a request back: the first event is set when it waits, and the second one releases it."""
    waits, continues = threading.Event(), threading.Event()

    def notes(request: ReceivedRequest) -> bool:
        if request.number == number:
            waits.set()
            continues.wait(WAIT_SECONDS)
        return False

    service.add_faults([Fault(kind="status", only=notes)])
    return waits, continues


@pytest.mark.parametrize("count", [0, 1, 5])
def test_closing_early_ends_the_threads(log: AuditEvents, count: int) -> None:
    with ends_its_threads(), closing(log.pages()) as pages:
        assert len(list(islice(pages, count))) == count


def test_an_iterator_that_is_dropped_ends_its_threads(log: AuditEvents) -> None:
    """After `break` in a loop, for example, nothing refers to the iterator any more."""
    with ends_its_threads():
        for _ in log.pages():
            break


def test_closing_early_does_not_wait_for_a_service_that_hangs(
    service: Service, settings: dict[str, Any]
) -> None:
    """The connections end at once, and no retry is sent.

    With several requests in flight, the first page might be requested again, as part of a window.
    """
    service.add(events(0, COUNT))
    log = AuditEvents(**settings, page_size=20, request_timeout_seconds=300, concurrency=1)
    hangs = hang_from(service, 2)
    with ends_its_threads():
        with closing(log.pages()) as pages:
            next(pages)
            assert hangs.wait(WAIT_SECONDS)
        requests = len(service.requests)
    assert len(service.requests) == requests


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_cannot_continue_a_run(log: AuditEvents) -> None:
    """The fork does not have the threads, so it would wait for a page forever."""
    with closing(log.pages()) as pages:
        found = ids([next(pages)])
        pid = os.fork()
        if pid == 0:
            signal.alarm(WAIT_SECONDS)
            try:
                next(pages)
            except RuntimeError:
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        assert found + ids(pages) == EXPECTED


def test_two_runs_can_be_read_in_asyncio(log: AuditEvents) -> None:
    """The event loop continues while pages are requested."""

    async def read() -> list[str]:
        found: list[str] = []
        with closing(log.pages()) as pages:
            while page := await asyncio.to_thread(next, pages, None):
                found += ids([page])
        return found

    async def both() -> list[list[str]]:
        return list(await asyncio.gather(read(), read()))

    with ends_its_threads():
        assert asyncio.run(both()) == [EXPECTED, EXPECTED]


def test_another_thread_ends_a_run_that_waits(service: Service, settings: dict[str, Any]) -> None:
    """The thread that waits for a page of a service that hangs gets StoppedError."""
    service.add(events(0, COUNT))
    log = AuditEvents(**settings, page_size=20, request_timeout_seconds=300, concurrency=1)
    hangs = hang_from(service, 2)
    pages = log.pages()
    with ends_its_threads(), ThreadPoolExecutor(1) as pool:
        waits = pool.submit(list, pages)
        assert hangs.wait(WAIT_SECONDS)
        pages.close()
        with pytest.raises(StoppedError):
            waits.result(WAIT_SECONDS)
    assert next(pages, None) is None


def test_a_second_thread_that_advances_a_run_does_not_end_it(
    service: Service, settings: dict[str, Any]
) -> None:
    """The second thread gets an error, and the first one reads all events."""
    service.add(events(0, COUNT))
    log = AuditEvents(**settings, page_size=20, concurrency=1)
    waits, continues = hold(service, 2)
    pages = log.pages()
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(ids, pages)
        assert waits.wait(WAIT_SECONDS)
        with pytest.raises(ValueError, match="already executing"):
            next(pages)
        continues.set()
        assert found.result(WAIT_SECONDS) == EXPECTED


INTERRUPTED = """
import os, sys, threading
from tap_audit_events import AuditEvents

base_url, organization_id = sys.argv[1:]
log = AuditEvents(
    base_url=base_url, organization_id=organization_id, access_token=os.environ["TOKEN"],
    page_size=20, request_timeout_seconds=300,
)
before = set(threading.enumerate())
try:
    for page in log.pages():
        print(len(page), flush=True)
except KeyboardInterrupt:
    for thread in set(threading.enumerate()) - before:
        thread.join(15)
        assert not thread.is_alive()
    print("interrupted", flush=True)
"""


@pytest.mark.usefixtures("not_ignoring_ctrl_c")
def test_ctrl_c_ends_a_run_that_waits(
    service: Service, settings: dict[str, Any], log: AuditEvents
) -> None:
    """The run raises KeyboardInterrupt at once, and its threads end."""
    hangs = hang_from(service, 2)
    command = [sys.executable, "-c", INTERRUPTED, settings["base_url"], settings["organization_id"]]
    with subprocess.Popen(
        command,
        env=os.environ | {"TOKEN": settings["access_token"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert hangs.wait(WAIT_SECONDS)
        process.send_signal(signal.SIGINT)
        printed, log_text = process.communicate(timeout=WAIT_SECONDS * 2)
    assert printed.endswith("interrupted\n"), log_text  # it may interrupt the line of a page
    assert process.returncode == 0
    assert log_text == ""
