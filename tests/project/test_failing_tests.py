"""A test that fails ends at once, even if it leaves processes, threads or servers running."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrations.pipeline import PROJECT

FAILING = """
import logging
import threading

from tap_audit_events.config.settings import read_settings
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.run.run import Reader
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.sandbox import Fault
from tests.builders import an_event
from tests.service.scripted import client_of, keeps_open, scripted_service
from tests.singer.test_stopping import start, wait_for_log

HANG = Fault(kind="hang", seconds=3600, when="2-")
EVENTS = [an_event(id=f"{n}", at=f"2024-05-06T08:00:{n:02}Z") for n in range(50)]


def test_a_process_waits_for_a_response(service, start):
    service.add(EVENTS)
    service.add_faults([HANG])
    wait_for_log(start(page_size=5), "Reading ")
    raise ZeroDivisionError


def test_threads_wait_for_responses(service, settings):
    service.add(EVENTS)
    service.add_faults([HANG])
    given = read_settings(settings | {"page_size": 5, "concurrency": 1})
    logger = logging.getLogger("test")
    reader = Reader(given, lambda *_: Watermark(), runtime=Runtime(), logger=logger)
    for run in reader.pages():
        if run.delivery.texts():
            raise ZeroDivisionError


def test_threads_wait_without_end():
    for _ in range(8):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    raise ZeroDivisionError


def test_a_connection_is_kept_open():
    with scripted_service(keeps_open) as service:
        client_of(service).fetch()
        raise ZeroDivisionError
"""


@pytest.mark.long
def test_a_failing_test_ends_at_once(tmp_path: Path) -> None:
    """Requests that hang, a running process, threads and connections do not delay its end."""
    path = tmp_path / "test_failing.py"
    path.write_text(FAILING)
    plugins = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir", tmp_path, *plugins, path],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("ZeroDivisionError\n") >= 4, done.stdout
    assert "4 failed in " in done.stdout
