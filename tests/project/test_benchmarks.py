"""The benchmarks' own parts; how fast anything is, is no test."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import counting
from benchmarks.candidates import CANDIDATES, Job
from benchmarks.figures import Figures
from benchmarks.report import CHARTS, PAGE, charts, page
from benchmarks.results import Check, Results, Sample, load, save
from benchmarks.sandbox import Sandbox, starting
from benchmarks.suite import scenarios
from benchmarks.tables import TABLES, targets_table
from benchmarks.targets import targets

EVENTS = 2500
START_UP_SECONDS = 0.5
SECONDS = {"usual": 20.0, "bare": 1.0, "plain": 1.6, "tap-1": 8.0, "tap-4": 2.0, "tap-8": 1.0}
"""What a made-up run takes after its start-up; for others 4."""


def made_up_results() -> Results:
    samples = [
        Sample(
            scenario.name,
            name,
            repetition,
            START_UP_SECONDS + (SECONDS.get(name, 4.0) if scenario.events else 0.0),
            cpu_seconds=1.0,
            service_cpu_seconds=0.5,
            peak_mib=60.0,
            requests=7,
        )
        for repetition in (1, 2, 3)
        for scenario in scenarios()
        for _ in range(scenario.runs)
        for name in scenario.candidates
    ]
    checks = [Check("quiet", name, 1, 1, 100) for name in CANDIDATES]
    return Results("2026-01-31", {"cores": "2"}, {"dlt": "1"}, 3, scenarios(), checks, samples)


@pytest.fixture(scope="module")
def address() -> Iterator[dict[str, str]]:
    """A sandbox with 2,500 events, in a process of its own, as `make bench` has it."""
    with starting(EVENTS, 0.0, datetime(2026, 1, 31, tzinfo=UTC)) as process:
        sandbox = Sandbox(process)
        yield sandbox.address
        assert sandbox.traffic().violations == 0


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    save(made_up_results(), tmp_path / "results.json")

    assert load(tmp_path / "results.json") == made_up_results()


def test_ratios_are_of_events_a_second_after_start_up() -> None:
    """A million events in 2 s are a hundred times as fast as 100,000 in 20 s."""
    figures = Figures(made_up_results())

    assert figures.times_as_fast(("near-long", "tap-4"), ("near", "usual")) == pytest.approx(100)


def test_a_target_holds_on_its_side_of_the_bound() -> None:
    holds = {target.text: target.holds for target in targets(Figures(made_up_results()))}

    assert holds["events/s after start-up against the usual SDK tap"]
    loop = "time after start-up against the bare fetch loop, each page read"
    assert not holds[f"{loop} at once"]
    assert holds[f"{loop} by `response.content`"]
    assert "| 2.00 times | **no** |" in targets_table(Figures(made_up_results()))


def test_each_table_has_as_many_cells_in_every_row() -> None:
    for table in TABLES.values():
        rows = table(Figures(made_up_results())).splitlines()
        assert len(rows) > 2
        assert len({row.count("|") for row in rows}) == 1


def test_tables_show_what_there_is_of_a_run_of_few_candidates() -> None:
    """For whoever tries one candidate out."""
    results = made_up_results()
    few = [each for each in results.samples if each.candidate in {"bare", "dlt"}]
    figures = Figures(
        Results("", {}, {}, 3, results.scenarios, results.checks, few),
    )

    assert "bare fetch loop" in TABLES["near"](figures)
    assert "usual SDK tap" not in "".join(table(figures) for table in TABLES.values())


def test_charts_are_well_formed_and_know_light_and_dark() -> None:
    for chart in charts(made_up_results()).values():
        svg = ElementTree.fromstring(chart)  # noqa: S314 - our own
        assert svg.tag == "{http://www.w3.org/2000/svg}svg"
        assert "prefers-color-scheme: dark" in chart


def test_the_page_shows_the_results_that_are_there() -> None:
    """`make bench` has been run, and nothing in the page was typed by hand since."""
    assert page(PAGE.read_text(), load()) == PAGE.read_text()
    assert {path.name: path.read_text() for path in CHARTS.iterdir()} == charts(load())


def test_every_candidate_of_a_scenario_is_known() -> None:
    named = {name for scenario in scenarios() for name in scenario.candidates}

    assert named == set(CANDIDATES)


@pytest.mark.parametrize("name", ["bare", "plain", "tap-8", "sdk-lane", "usual"])
def test_candidates_of_this_environment_deliver_every_event(
    name: str, address: dict[str, str], tmp_path: Path
) -> None:
    """The others are checked by `make bench`, which has their environments."""
    candidate = CANDIDATES[name]
    done = subprocess.run(
        candidate.command(Job(address, tmp_path)), capture_output=True, check=True, cwd=tmp_path
    )
    assert candidate.output is not None
    found = counting.count(done.stdout.splitlines(), counting.FORMATS[candidate.output])

    assert (found.records, found.distinct) == (EVENTS, EVENTS)


def test_counting_tells_repeated_events_and_keeps_the_last_state() -> None:
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


def test_measuring_imports_little() -> None:
    """The peak of a child is never below that of the process that starts it."""
    code = "import sys, benchmarks.__main__; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not {"requests", "singer_sdk", "tap_audit_events"} & set(loaded)
