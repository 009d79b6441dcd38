"""The benchmarks count what the candidates deliver, and the page shows what was measured."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.__main__ import slow_downs
from benchmarks.candidates import TOOLS, Job
from benchmarks.counting import count
from benchmarks.loading import LOADS
from benchmarks.measuring import counted, new_job, timed
from benchmarks.report import CHART, PAGE, chart, page
from benchmarks.results import Figure, Results, Run, load
from benchmarks.sandbox import Sandbox, start_sandbox

EVENTS = 2500


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with start_sandbox(EVENTS, 0) as started:
        yield started


@pytest.mark.parametrize(
    "name", ["tap-8", *(pytest.param(n, marks=pytest.mark.long) for n in ("own-airbyte", "usual"))]
)
def test_a_tool_of_this_environment_delivers_every_event_once(name: str, sandbox: Sandbox) -> None:
    """`make bench` checks the others, as it has their environments."""
    with new_job(sandbox.settings) as job:
        assert counted(TOOLS[name], job)[:2] == (EVENTS, EVENTS)


def test_an_export_loads_every_event_once(sandbox: Sandbox) -> None:
    export = LOADS["parquet"]
    with new_job(sandbox.settings) as job:
        timed(export, job)
        assert count(export.output, (), job)[:2] == (EVENTS, EVENTS)


def test_repeated_events_are_found_and_the_last_state_is_kept(tmp_path: Path) -> None:
    messages = [
        {"type": "RECORD", "stream": "s", "record": {"id": "a"}},
        {"type": "STATE", "value": {"n": 1}},
        {"type": "RECORD", "stream": "s", "record": {"id": "a"}},
        {"type": "STATE", "value": {"n": 2}},
    ]
    found = count("singer", [json.dumps(each).encode() for each in messages], Job({}, tmp_path))

    assert found == (2, 1, {"n": 2})


def results(seconds: float) -> Results:
    """Results in which the tap takes this time and the usual SDK tap ten seconds."""
    figures = [
        Figure(name, milliseconds, 1000, [Run(10.0 if name == "usual" else seconds, 50.0)])
        for milliseconds in (0, 100)
        for name in TOOLS
    ]
    return Results("2026-01-31", {}, {}, 1, figures)


def test_a_slow_down_is_a_smaller_lead_over_the_usual_tap() -> None:
    assert slow_downs(results(1.0), results(1.2)) == []
    assert slow_downs(results(1.0), results(2.0))[0] == "this tap, 0 ms: 5.0 times, was 10.0"


def test_the_page_shows_the_results() -> None:
    """Its generated parts and its chart were not changed by hand since `make bench`."""
    assert page(PAGE.read_text(), load()) == PAGE.read_text()
    assert [path.read_text() for path in CHART.parent.iterdir()] == [chart(load())]
