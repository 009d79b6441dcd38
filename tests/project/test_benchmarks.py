"""The results of the benchmarks are reported correctly; no test depends on speed."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from benchmarks.candidates import CANDIDATES
from benchmarks.figures import Figures
from benchmarks.lines import CORE, CORE_CODE, WHOLE, WHOLE_CODE, count_lines
from benchmarks.report import CHARTS, PAGE, charts, page
from benchmarks.results import (
    BATCH,
    COPY,
    DEFAULT_REPETITIONS,
    Check,
    DisplacedCase,
    DisplacedRun,
    Load,
    Results,
    Sample,
    load,
    save,
)
from benchmarks.suite import scenarios
from benchmarks.tables import PARTS, loads_table, note, simplicity_table, targets_table
from benchmarks.targets import Target, targets

START_UP_SECONDS = 0.5
SECONDS = {
    "usual": 20.0,
    "usual-msgspec": 10.0,
    "bare": 1.0,
    "tap-1": 8.0,
    "tap-4": 2.0,
    "tap-8": 1.0,
}
"""The seconds of an invented run after its start-up; other candidates take 4."""

REQUESTS = 7


def invented_results() -> Results:
    samples = [
        Sample(
            scenario.name,
            name,
            repetition,
            START_UP_SECONDS + (SECONDS.get(name, 4.0) if scenario.events else 0.0),
            cpu_seconds=1.0,
            service_cpu_seconds=0.5,
            peak_mib=60.0,
            requests=REQUESTS,
        )
        for repetition in (1, 2, 3, 4, 5)
        for scenario in scenarios()
        for _ in range(scenario.runs)
        for name in scenario.candidates
    ]
    case = DisplacedCase("even", 100, event=5, places=200)
    displaced = [
        DisplacedRun(case, missing=0, repeated=0, error=None),
        DisplacedRun(case, missing=3, repeated=0, error="AE-NO-PROGRESS"),
        DisplacedRun(case, missing=1, repeated=0, error=None),
    ]
    return Results(
        date="2026-01-31",
        machine={"cores": "2"},
        versions={"dlt": "1"},
        repetitions=DEFAULT_REPETITIONS,
        scale=1.0,
        lines={CORE: 1700, WHOLE: 9000, CORE_CODE: 1000, WHOLE_CODE: 5000},
        scenarios=scenarios(),
        checks=[Check("quiet", name, 1, 1, 100) for name in CANDIDATES],
        samples=samples,
        displaced=displaced,
        loads=[Load(COPY, 1, 30_000, 18.0), Load(BATCH, 1, 30_000, 6.0)],
        steps={"checking": 0.5},
    )


def replaced(**fields: Any) -> Figures:
    return Figures(msgspec.structs.replace(invented_results(), **fields))


def all_targets() -> dict[str, Target]:
    return {target.text: target for target in targets(Figures(invented_results()))}


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    save(invented_results(), tmp_path / "results.json")

    assert load(tmp_path / "results.json") == invented_results()


def test_ratios_are_of_events_per_second_after_start_up() -> None:
    """A million events in 2 s are 200 times as fast as 50,000 in 20 s."""
    figures = Figures(invented_results())

    assert figures.times_as_fast(("near-long", "tap-4"), ("near", "usual")) == pytest.approx(200)


def test_a_target_is_reached_on_its_side_of_the_bound() -> None:
    found = all_targets()

    assert found["events/s after start-up against the usual SDK tap, 0 ms"].holds
    assert found["time after start-up against the bare loop, 0 ms"].holds is False
    assert "| 2.00 times | **no** |" in targets_table(Figures(invented_results()))


def test_a_figure_without_a_bound_is_only_shown() -> None:
    text = "events/s after start-up against the usual SDK tap, 0 ms, with the SDK's msgspec writer"

    assert all_targets()[text].holds is None
    assert f"| {text} |  | 100.0 times |  |" in targets_table(Figures(invented_results()))


def test_batch_files_are_compared_with_records() -> None:
    """The ratio is that of the times of whole loads."""
    text = "events/s into PostgreSQL by batch files against RECORD messages, start-up included"
    assert all_targets()[text].measured == 3.0
    assert "BATCH | 30,000 | 6.0 | 5,000 |" in loads_table(Figures(invented_results()))


def test_requests_are_compared_with_those_of_a_sequential_run() -> None:
    """Three pages allow 6.75 requests, 200 pages 253."""
    found = {text: target for text, target in all_targets().items() if "1.25 n + 3" in text}

    assert len(found) == 8
    three = found["requests, 3 pages, n = 3, at most 1.25 n + 3"]
    assert (three.bound, three.measured, three.holds) == (6.75, REQUESTS, False)
    assert found["requests, ties, n = 200, at most 1.25 n + 3"].bound == 253


def test_memory_is_compared_with_the_largest_of_all_histories() -> None:
    """Of 200,000 events, twelve histories are read at 100 ms, with different peaks."""
    peaks = {"far-full": 132.0, "far-long": 80.0, "far-long-154": 120.0}
    samples = [
        msgspec.structs.replace(each, peak_mib=peaks.get(each.scenario, 60.0))
        for each in invented_results().samples
    ]
    found = {target.text: target for target in targets(replaced(samples=samples))}
    assert found["the same against 200,000 events, largest of 12 histories"].measured == 1.1


def test_a_loss_is_silent_only_without_an_error() -> None:
    found = {text: target for text, target in all_targets().items() if "out of order" in text}
    silent, repeated, failed = found.values()

    assert (silent.measured, silent.holds) == (1, False)
    assert (repeated.measured, repeated.holds) == (0, True)
    assert failed.measured == 1


FOLDERS = {"extraction": 3, "service": 4, "events": 10, "sandbox": 100, "cli": 1000}


def test_lines_are_counted_by_folder(tmp_path: Path) -> None:
    """The sandbox and other faces are not counted, nor are docstrings and comments as code."""
    for folder, lines in FOLDERS.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "module.py").write_text("x = 1\n" * lines)
    (tmp_path / "service" / "other.py").write_text(
        '"""A text.\n\nMore of it.\n"""\n\nx = """\n"""  # a comment\n\n# another\n'
    )

    assert count_lines(tmp_path) == {CORE: 16, CORE_CODE: 9, WHOLE: 26, WHOLE_CODE: 19}
    of_the_tap = count_lines()
    assert of_the_tap[WHOLE] > of_the_tap[CORE] > 0


def test_the_cost_of_simplicity_is_computed_from_both_versions() -> None:
    table = simplicity_table(Figures(invented_results()))

    assert "| 30.1 | 200.0 | +564% | at least 20 times |" in table
    assert "| 2,340 | 1,700 | -27% |" in table
    assert table.count("\n") == 8


def test_a_page_with_few_repetitions_says_so() -> None:
    assert note(replaced()) == ""
    assert "from 3 repetitions, fewer than the default of 5" in note(replaced(repetitions=3))


def test_a_page_of_a_trial_run_says_so() -> None:
    figures = replaced(scale=0.05, repetitions=1)

    assert "trial run: 5% of the events, 1 repetition." in note(figures)
    assert "yes" not in targets_table(figures)
    assert "%" not in simplicity_table(figures)


@pytest.mark.parametrize("name", [name for name in PARTS if name != "note"])
def test_a_table_has_as_many_cells_in_every_row(name: str) -> None:
    rows = PARTS[name](Figures(invented_results())).splitlines()

    assert len(rows) > 2
    assert len({row.count("|") for row in rows}) == 1


def test_tables_show_only_the_candidates_of_the_run() -> None:
    """A run of `make bench` may have only one candidate."""
    samples = invented_results().samples
    few = [each for each in samples if each.candidate in {"bare", "dlt"}]
    figures = replaced(samples=few, displaced=[])

    assert "bare loop" in PARTS["near"](figures)
    assert "usual SDK tap" not in "".join(part(figures) for part in PARTS.values())


def test_charts_are_well_formed_and_support_light_and_dark() -> None:
    for chart in charts(invented_results()).values():
        svg = ElementTree.fromstring(chart)  # noqa: S314 - our own
        assert svg.tag == "{http://www.w3.org/2000/svg}svg"
        assert "prefers-color-scheme: dark" in chart


def test_the_page_shows_the_results() -> None:
    """Its generated parts and charts were not changed by hand since `make bench`."""
    assert page(PAGE.read_text(), load()) == PAGE.read_text()
    assert {path.name: path.read_text() for path in CHARTS.iterdir()} == charts(load())


def test_every_part_is_on_the_page() -> None:
    text = PAGE.read_text()

    assert [name for name in PARTS if f"<!-- made: {name} -->" not in text] == []
