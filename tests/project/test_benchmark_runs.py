"""The benchmarks run the candidates as users do, and count what they deliver."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks import counting
from benchmarks.candidates import CANDIDATES, Job
from benchmarks.displaced import PAGE_SIZES, SHAPES, cases, run_displaced
from benchmarks.results import (
    FAR_EARLIER,
    Content,
)
from benchmarks.sandbox import Sandbox, start_sandbox
from benchmarks.shapes import SHAPES as ALL_SHAPES
from benchmarks.shapes import times
from benchmarks.suite import scenarios

EVENTS = 2500
UNTIL = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, Any]]:
    """The settings for a sandbox with 2,500 events, in a separate process as in `make bench`."""
    with start_sandbox(Content(EVENTS, gzip=True), UNTIL) as process:
        sandbox = Sandbox(process)
        yield sandbox.settings | {"page_size": 1000}
        assert sandbox.traffic().violations == 0


def test_every_candidate_of_a_scenario_is_known() -> None:
    named = {name for scenario in scenarios() for name in scenario.candidates}

    assert named == set(CANDIDATES)


def test_a_history_that_ended_earlier_is_read_up_to_its_end(tmp_path: Path) -> None:
    """Otherwise days without events would follow it; all other runs read until now."""
    settings = {"end_date": "2026-01-02T03:04:05Z", "page_size": 1000}

    def config(*, is_past: bool) -> Any:
        job = Job(settings | {"is_past": is_past}, tmp_path)
        command = CANDIDATES["tap-8"].command(job)
        return json.loads(Path(command[command.index("--config") + 1]).read_text())

    assert config(is_past=True)["end_date"] == settings["end_date"]
    assert "end_date" not in config(is_past=False)
    past = {each.name for each in scenarios() if each.content.is_past}
    assert past == set(FAR_EARLIER)


@pytest.mark.parametrize(
    "name",
    [
        "bare",
        "tap-8",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("sdk-lane", "own-airbyte", "usual", "usual-msgspec")
        ),
    ],
)
def test_candidates_of_this_environment_deliver_every_event(
    name: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    """`make bench` checks the other candidates, as it has their environments."""
    candidate = CANDIDATES[name]
    done = subprocess.run(
        candidate.command(Job(settings, tmp_path)), capture_output=True, check=True, cwd=tmp_path
    )
    assert candidate.output is not None
    found = counting.count(done.stdout.splitlines(), counting.FORMATS[candidate.output])

    assert (found.records, found.distinct) == (EVENTS, EVENTS)


def test_the_usual_tap_has_the_message_writer_of_the_sdks_template() -> None:
    """Only its second form has the msgspec writer."""
    code = (
        "from benchmarks.usual_tap import UsualTap, UsualTapWithMsgspec\n"
        "for tap in (UsualTap, UsualTapWithMsgspec):\n"
        "    print(tap.message_writer_class.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["SimpleSingerWriter", "MsgSpecWriter"]


@pytest.mark.parametrize("shape", ALL_SHAPES)
def test_a_shape_has_the_requested_number_of_events_before_the_end(shape: str) -> None:
    found = list(times(shape, 3000, UNTIL))

    assert len(found) == 3000
    assert max(found) <= "2026-01-31T00:00:00.000Z"
    assert found == list(times(shape, 3000, UNTIL))


def test_shapes_differ_in_how_many_events_share_an_hour() -> None:
    """An hour of even data has few events and a burst nearly all; ties share instants."""
    most = {
        shape: max(Counter(time[:13] for time in times(shape, 3000, UNTIL)).values())
        for shape in ALL_SHAPES
    }

    assert most["even"] < 30
    assert most["one burst"] > 2000
    assert len(set(times("ties", 3000, UNTIL))) < 60
    assert max(times("ended a year ago", 3000, UNTIL)) < "2025-02-01"


def test_displaced_cases_cover_every_shape_with_every_page_size() -> None:
    assert {(case.shape, case.page_size) for case in cases(20)} == {
        (shape, page_size) for shape in SHAPES for page_size in PAGE_SIZES
    }
    assert all(100 <= case.places < 1000 for case in cases(50))


def test_a_run_against_a_displaced_event_is_counted() -> None:
    """The displaced event is not lost without an error, and no event is repeated."""
    (run,) = run_displaced(1, UNTIL)

    assert not run.is_silent_loss
    assert run.repeated == 0


def test_counting_finds_repeated_events_and_keeps_the_last_state() -> None:
    messages = [
        {"type": "RECORD", "stream": "s", "record": {"id": "a"}},
        {"type": "STATE", "value": {"n": 1}},
        {"type": "RECORD", "stream": "s", "record": {"id": "a"}},
        {"type": "STATE", "value": {"n": 2}},
    ]
    lines = [json.dumps(message).encode() + b"\n" for message in messages]
    found = counting.count(lines, counting.FORMATS["singer"])

    assert (found.records, found.distinct, found.state) == (2, 1, {"n": 2})
    assert found.output_bytes == sum(map(len, lines))


def test_measuring_does_not_import_large_libraries() -> None:
    """The memory peak of a child is never below that of the process that starts it."""
    code = "import sys, benchmarks.__main__; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not {"requests", "singer_sdk", "tap_audit_events"} & set(loaded)
