"""No response fills the memory: what is too large ends the run with an error, and loses nothing."""

import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.builders import ORGANIZATION_ID, an_event
from tests.errors.test_errors import only_error
from tests.running import Run, run
from tests.service.scripted import EMPTY_PAGE, Peer, Scripted, scripted_service

MOST_EVENTS, LONGEST_ID, LONGEST_TIME, LONGEST_CURSOR = 1000, 1000, 100, 16_384
"""The documented bounds: docs/operations.md."""

MEGABYTE = 1_000_000
LARGE = 50 * MEGABYTE

MOST_MEMORY_MB = 350
"""What a run may take if every response has 50 MB: docs/operations.md."""


def events(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Events a millisecond apart."""
    return [
        an_event(id=str(n), at=f"2024-05-06T07:08:{n // 1000:02}.{n % 1000:03}Z")
        for n in range(first, first + count)
    ]


def a_page(page: Sequence[object], cursor: str | None = None) -> bytes:
    envelope: dict[str, object] = {"auditEvents": page}
    return json.dumps(envelope if cursor is None else envelope | {"nextCursor": cursor}).encode()


@contextmanager
def serving(*pages: bytes) -> Iterator[Scripted]:
    """Serve these pages, compressed, one for each request; then pages without events."""
    left = iter([gzip.compress(page, compresslevel=1) for page in pages])
    empty = gzip.compress(EMPTY_PAGE)

    def serve(peer: Peer) -> None:
        while peer.hear():
            peer.respond(next(left, empty), "Content-Encoding: gzip")

    with scripted_service(serve) as service:
        yield service


def run_against(service: Scripted, *, under: Sequence[str] = (), **options: Any) -> Run:
    settings = {
        "base_url": service.base_url,
        "organization_id": ORGANIZATION_ID,
        "access_token": "acme_pat_bounds",
        "concurrency": 1,
    }
    return run(settings, under=under, **options)


def check_nothing_is_lost(done: Run, ids: Sequence[str], rest: Sequence[dict[str, Any]]) -> None:
    """Check that a failed run delivered events, and that the next one brings the rest, once."""
    assert done.ids == list(ids)
    with serving(a_page(events(2) + list(rest))) as service:
        assert run_against(service, state=done.state).raise_for_exit_code().ids == [
            event["id"] for event in rest
        ]


def test_as_many_events_as_can_be_requested_are_read() -> None:
    """1,000 on a page, whatever `page_size` is: fewer may be asked for than come."""
    with serving(a_page(events(MOST_EVENTS))) as service:
        assert len(run_against(service).raise_for_exit_code().ids) == MOST_EVENTS


@pytest.mark.parametrize("extra", [events(1, first=2 + MOST_EVENTS), [0], [None], [{}]])
def test_a_page_with_more_events_is_an_error(extra: list[object]) -> None:
    """The pages before it are delivered, and the error names the bound."""
    first, second = events(2), events(MOST_EVENTS, first=2)
    with serving(a_page(first, "c"), a_page([*second, *extra])) as service:
        done = run_against(service)
    line = only_error(done)
    assert line.startswith("AE-TOO-MANY-EVENTS: ")
    assert "more than 1,000" in line
    assert "in the oldest event to " in line
    check_nothing_is_lost(done, ["0", "1"], second[:3])


@pytest.mark.parametrize("length", [LONGEST_CURSOR, LONGEST_CURSOR + 1])
def test_a_cursor_longer_than_a_url_is_an_error(length: int) -> None:
    """The page that it came with is delivered."""
    with serving(a_page(events(2), "é" * length), a_page(events(1, first=2))) as service:
        done = run_against(service)
    if length == LONGEST_CURSOR:
        assert done.raise_for_exit_code().ids == ["0", "1", "2"]
        return
    line = only_error(done)
    assert line.startswith("AE-CURSOR-LENGTH: ")
    assert "16,385 characters; the most is 16,384" in line
    assert len(line) < 600
    check_nothing_is_lost(done, ["0", "1"], events(2, first=2))


@pytest.mark.parametrize("character", ["x", "é", "\U0001f600"])
@pytest.mark.parametrize("length", [LONGEST_ID, LONGEST_ID + 1])
def test_an_id_that_is_too_long_is_an_error(length: int, character: str) -> None:
    """The events before it are delivered."""
    given = an_event(id=character * length, at="2024-05-06T07:09:00Z")
    with serving(a_page([*events(2), given])) as service:
        done = run_against(service)
    if length == LONGEST_ID:
        assert done.raise_for_exit_code().ids == ["0", "1", character * length]
        return
    line = only_error(done)
    assert line.startswith("AE-EVENT: ")
    assert "length <= 1000 - at `$.id`" in line
    assert len(line) < 1200
    check_nothing_is_lost(done, ["0", "1"], events(2, first=2))


@pytest.mark.parametrize("length", [LONGEST_TIME, LONGEST_TIME + 1])
def test_a_time_that_is_too_long_is_an_error(length: int) -> None:
    """Its digits are delivered up to the bound."""
    time = "2024-05-06T07:09:00.".ljust(length - 1, "1") + "Z"
    with serving(a_page([*events(2), an_event(id="2", at=time)])) as service:
        done = run_against(service)
    if length == LONGEST_TIME:
        assert done.raise_for_exit_code().records[-1]["occurredAt"] == time
        return
    line = only_error(done)
    assert line.startswith("AE-EVENT: ")
    assert "length <= 100 - at `$.occurredAt`" in line
    assert len(line) < 1200
    check_nothing_is_lost(done, ["0", "1"], events(2, first=2))


# Memory


def filled(start: str, piece: str, end: str) -> bytes:
    """A body of 50 MB."""
    count = (LARGE - len(start) - len(end)) // len(piece)
    return (start + piece * count + end).encode()


EVENT = json.dumps(an_event())[:-1]
OTHER_FORM = json.dumps(an_event(at="2024-05-06T07:08:09+00:00"))[:-1]
UNSTORABLE = json.dumps(an_event(id="\ufffd"))[:-1] + ', "nul": "\\u0000"'

LARGE_BODIES = {
    "zeros": lambda: filled('{"auditEvents":[', "0,", "0]}"),
    "empty objects": lambda: filled('{"auditEvents":[', "{},", "{}]}"),
    "tiny events": lambda: filled(
        '{"auditEvents":[',
        '{"id":"1","occurredAt":"2024-05-06T07:08:09Z"},',
        "{}]}",
    ),
    "nested lists": lambda: filled('{"auditEvents":', "[", ""),
    "nested objects": lambda: filled('{"auditEvents":[', '{"a":', ""),
    "a cursor": lambda: filled('{"auditEvents":[],"nextCursor":"', "x", '"}'),
    "an id": lambda: filled('{"auditEvents":[{"id":"', "x", '"}]}'),
    "a fraction": lambda: filled(
        '{"auditEvents":[{"id":"1","occurredAt":"2024-05-06T07:08:09.', "1", 'Z"}]}'
    ),
    "a name": lambda: filled('{"auditEvents":[],"', "x", '":1}'),
    "a name in an event": lambda: filled(f'{{"auditEvents":[{EVENT},"', "x", '":1}]}'),
    "names in an event": lambda: filled(f'{{"auditEvents":[{EVENT},"x":[', '{"y":1},', "0]}]}"),
    "lists in an event": lambda: filled(f'{{"auditEvents":[{EVENT},"x":[', "[],", "0]}]}"),
    "lists in an event whose time is rewritten": lambda: filled(
        f'{{"auditEvents":[{OTHER_FORM},"y":"2024-05-06T07:08:09+00:00","x":[', "[],", "0]}]}"
    ),
    "lists next to what cannot be stored": lambda: filled(
        f'{{"auditEvents":[{UNSTORABLE},"x":[', "[],", "0]}]}"
    ),
    "lists next to a key that comes twice": lambda: filled(
        '{"auditEvents":[],"auditEvents":[],"x":[', "[],", "0]}"
    ),
    "escapes": lambda: filled(f'{{"auditEvents":[{UNSTORABLE},"x":"', "\\n", '"}]}'),
}

MEASURE = """
import resource, subprocess, sys
from pathlib import Path
code = subprocess.run(sys.argv[2:]).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
Path(sys.argv[1]).write_text(str(peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)))
sys.exit(code)
"""


def peak_megabytes(folder: Path, *pages: bytes) -> tuple[Run, float]:
    """Run the tap against a service with these pages; its end, and the most memory it took."""
    peak = folder / "peak"
    with serving(*pages) as service:
        done = run_against(service, under=[sys.executable, "-c", MEASURE, str(peak)])
    return done, float(peak.read_text())


@pytest.mark.long
@pytest.mark.parametrize("kind", LARGE_BODIES)
def test_no_response_fills_the_memory(kind: str, tmp_path: Path) -> None:
    """A run keeps to the documented memory, whatever fifty megabytes contain."""
    done, peak = peak_megabytes(tmp_path, LARGE_BODIES[kind]())
    assert "Traceback" not in done.log
    assert "AE-DEFECT" not in done.log
    assert peak < MOST_MEMORY_MB


@pytest.mark.long
def test_large_cursors_ids_and_times_do_not_add_up(tmp_path: Path) -> None:
    """Not over many pages either: each is as long as it may be."""
    pages = [
        a_page(
            [
                an_event(
                    id=f"{number * 500 + n}".ljust(LONGEST_ID, "x"),
                    at=f"2024-05-06T07:{number // 60:02}:{number % 60:02}.{n:03}".ljust(99, "1")
                    + "Z",
                )
                for n in range(500)
            ],
            f"{number}".ljust(LONGEST_CURSOR, "x"),
        )
        for number in range(200)
    ]
    done, peak = peak_megabytes(tmp_path, *pages)
    assert len(done.raise_for_exit_code().ids) == 100_000
    assert peak < MOST_MEMORY_MB
