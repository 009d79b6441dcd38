"""The memory stays bounded whatever responses contain and however many are in flight."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service, serve
from tests.builders import an_event
from tests.integrations.test_bounds import (
    MAX_CURSOR_LENGTH,
    MAX_ID_LENGTH,
    a_page,
    run_against,
    serving,
)
from tests.running import Run, run, settings_for

pytestmark = pytest.mark.long

LARGE = 50_000_000
LARGE_EVENT = 8_000_000

MAX_MEMORY_MB = 350
"""The most memory of a run if every response has 50 MB: docs/operations.md."""

MAX_MEMORY_OF_OBJECTS_MB = 700
"""The most memory if events become Python objects, as for stream maps: docs/operations.md."""

MORE_IN_FLIGHT_MB = 150
"""The most memory that each further request in flight adds: docs/operations.md."""


def filled(start: str, piece: str, end: str, size: int = LARGE) -> bytes:
    """Return a body, or an event, of so many bytes or slightly less."""
    count = (size - len(start) - len(end)) // len(piece)
    return (start + piece * count + end).encode(errors="surrogatepass")


def large_events(start: str, piece: str, end: str, **fields: Any) -> bytes:
    """Return a body of 50 MB with events of 8 MB each, most of which is one field."""
    texts = []
    for number in range(LARGE // LARGE_EVENT):
        event = json.dumps(an_event(**{"id": f"{number}"} | fields))[:-1]
        texts.append(filled(f'{event}, "x": {start}', piece, f"{end}}}", LARGE_EVENT))
    return b'{"auditEvents": [%b]}' % b",".join(texts)


OTHER_FORM = "2024-05-06T07:08:09+00:00"

LARGE_BODIES = {
    "zeros": lambda: filled('{"auditEvents":[', "0,", "0]}"),
    "tiny events": lambda: filled(
        '{"auditEvents":[',
        '{"id":"1","occurredAt":"2024-05-06T07:08:09Z"},',
        "{}]}",
    ),
    "nested objects": lambda: filled('{"auditEvents":[', '{"a":', ""),
    "a cursor": lambda: filled('{"auditEvents":[],"nextCursor":"', "x", '"}'),
    "an id": lambda: filled('{"auditEvents":[{"id":"', "x", '"}]}'),
    "a fraction": lambda: filled(
        '{"auditEvents":[{"id":"1","occurredAt":"2024-05-06T07:08:09.', "1", 'Z"}]}'
    ),
    "an event": lambda: filled(
        '{"auditEvents":[{"id":"1","occurredAt":"2024-05-06T07:08:09Z","x":[', '{"y":1.5},', "0]}]}"
    ),
    "names in events": lambda: large_events("[", '{"y":1},', "0]"),
    "fractions in events": lambda: large_events("[", "1.5,", "0]"),
    "lists in events whose time is rewritten": lambda: large_events(
        "[", "[],", f'"{OTHER_FORM}"]', at=OTHER_FORM
    ),
    "escapes": lambda: large_events('"', "\\n", '\\u0000"'),
}

MEASURE = """
import resource, subprocess, sys
from pathlib import Path
code = subprocess.run(sys.argv[2:]).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
Path(sys.argv[1]).write_text(str(peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)))
sys.exit(code)
"""


def peak_megabytes(folder: Path, *pages: bytes, **settings: Any) -> tuple[Run, float]:
    """Run the tap against a service with these pages; return its result and peak memory."""
    peak = folder / "peak"
    with serving(*pages) as service:
        done = run_against(service, under=measured(peak), **settings)
    return done, float(peak.read_text())


def measured(peak: Path) -> Sequence[str]:
    """Return a command that runs another command and writes its peak memory to a file."""
    return [sys.executable, "-c", MEASURE, str(peak)]


def check_it_ended_as_expected(done: Run) -> None:
    assert "Traceback" not in done.log
    assert "AE-DEFECT" not in done.log


@pytest.mark.parametrize("kind", LARGE_BODIES)
def test_no_response_fills_the_memory(kind: str, tmp_path: Path) -> None:
    """A run stays below the documented memory, whatever a response of 50 MB contains."""
    done, peak = peak_megabytes(tmp_path, LARGE_BODIES[kind]())
    check_it_ended_as_expected(done)
    assert peak < MAX_MEMORY_MB


@pytest.mark.parametrize("lane", ["map", "flat"])
@pytest.mark.parametrize("kind", ["an event", "names in events", "fractions in events", "escapes"])
def test_no_event_fills_the_memory(kind: str, lane: str, tmp_path: Path) -> None:
    """With maps and flattening, one event at a time becomes Python objects."""
    settings: dict[str, Any] = {"flattening_enabled": True, "flattening_max_depth": 3}
    if lane == "map":
        settings = {"stream_maps": {"audit_events": {"copy": "x"}}}
    done, peak = peak_megabytes(tmp_path, LARGE_BODIES[kind](), **settings)
    check_it_ended_as_expected(done)
    assert peak < MAX_MEMORY_OF_OBJECTS_MB


@pytest.mark.parametrize("kind", ["an event", "names in events", "escapes"])
@pytest.mark.parametrize("writes", ["records", "batches"])
def test_no_form_of_a_record_fills_the_memory(kind: str, writes: str, tmp_path: Path) -> None:
    """Records have details as text and the raw event, and are written to stdout or to files."""
    settings: dict[str, Any] = {"details_format": "string", "raw_event": True}
    if writes == "batches":
        storage = {"root": str(tmp_path / "batches")}
        settings["batch_config"] = {"encoding": {"format": "jsonl"}, "storage": storage}
    done, peak = peak_megabytes(tmp_path, LARGE_BODIES[kind](), **settings)
    check_it_ended_as_expected(done)
    assert peak < MAX_MEMORY_OF_OBJECTS_MB


@pytest.mark.parametrize(
    ("kind", "concurrency"),
    [("zeros", 4), ("zeros", 8), ("fractions in events", 8), ("escapes", 8)],
)
def test_requests_in_flight_do_not_fill_the_memory(
    kind: str, concurrency: int, tmp_path: Path
) -> None:
    """The service sends large bodies only once as many requests as allowed are in flight."""
    service, harmless = Service(page_latency_seconds=0.4), 59
    service.add_generated(20_000, 20, 1, datetime(2024, 1, 21, tzinfo=UTC))
    hostile = Fault(kind="body", text=LARGE_BODIES[kind](), when=f"{harmless + 1}-")
    service.add_faults([hostile])
    with serve(service) as server:
        settings = settings_for(service, server.base_url)
        few = {"page_size": 10, "concurrency": concurrency, "max_retries": 0}
        done = run(settings | few, under=measured(tmp_path / "peak"))
    check_it_ended_as_expected(done)
    assert len(service.requests) >= harmless + concurrency // 2  # the first of them ends the run
    peak = float((tmp_path / "peak").read_text())
    assert peak < MAX_MEMORY_MB + (concurrency - 1) * MORE_IN_FLIGHT_MB


def test_large_cursors_ids_and_times_do_not_add_up(tmp_path: Path) -> None:
    """Memory does not grow over many pages on which each of them has the maximum length."""
    pages = [
        a_page(
            [
                an_event(
                    id=f"{number * 500 + n}".ljust(MAX_ID_LENGTH, "x"),
                    at=f"2024-05-06T07:{number // 60:02}:{number % 60:02}.{n:03}".ljust(99, "1")
                    + "Z",
                )
                for n in range(500)
            ],
            f"{number}".ljust(MAX_CURSOR_LENGTH, "x"),
        )
        for number in range(200)
    ]
    done, peak = peak_megabytes(tmp_path, *pages)
    assert len(done.raise_for_exit_code().ids) == 100_000
    assert peak < MAX_MEMORY_MB
