"""Generates the tables and charts of `docs/performance.md` from `results.json`."""

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from benchmarks.candidates import CANDIDATES, PROJECT
from benchmarks.charts import Bar, bar_chart
from benchmarks.figures import Figures, Runs, memory_runs, runs_of
from benchmarks.results import RESULTS, Results, load
from benchmarks.tables import PARTS, all_parts

DOCS: Final = PROJECT / "docs"
PAGE: Final = DOCS / "performance.md"
CHARTS: Final = DOCS / "charts"


def generator() -> ModuleType:
    """Import `docs/generate.py`, which replaces the generated parts of a page.

    It must be imported from its folder, as `docs` is not a package.
    """
    sys.path.insert(0, str(DOCS))  # it imports modules next to it
    try:
        return importlib.import_module("generate")
    finally:
        sys.path.pop(0)


def page(text: str, results: Results) -> str:
    """Return the page with every generated part replaced."""
    module, figures = generator(), Figures(results)
    for name, part in PARTS.items():
        text = module.with_part(text, name, part(figures))
    return text


def charts(results: Results) -> dict[str, str]:
    """Return each chart by the name of its file."""
    figures = Figures(results)
    latency = f"{figures.scenario('far').milliseconds} ms per response"
    events = f"{figures.scenario('far-long').events:,} events"
    speed, seconds = figures.events_per_second, figures.after_start_up
    near, far = runs_of(figures, "near", "near-long"), runs_of(figures, "far")
    in_flight = runs_of(figures, "far-long")
    return {
        "near.svg": _chart("Events per second, 0 ms per response", near, speed, "{:,.0f}"),
        "far.svg": _chart(f"Events per second, {latency}", far, speed, "{:,.0f}"),
        "in-flight.svg": _chart(f"Seconds for {events}, {latency}", in_flight, seconds, "{:.1f}"),
        "memory.svg": bar_chart("Peak memory, MiB", _peaks(figures)),
    }


def _chart(
    title: str, rows: Sequence[Runs], measure: Callable[[str, str], float], shown: str
) -> str:
    values = {name: measure(scenario, name) for scenario, name in rows}
    bars = [_bar(name, value, shown.format(value)) for name, value in values.items()]
    return bar_chart(title, bars)


def _bar(name: str, value: float, shown: str, more: str = "") -> Bar:
    candidate = CANDIDATES[name]
    return Bar(candidate.label + more, value, shown, candidate.own)


def _peaks(figures: Figures) -> Iterator[Bar]:
    for scenario, name in memory_runs(figures):
        peak = figures.peak_mib(scenario, name)
        measured = figures.scenario(scenario)
        more = f"; {measured.events:,} events"
        if measured.milliseconds:
            more += f", {measured.milliseconds} ms per response"
        yield _bar(name, peak, f"{peak:.0f}", more)


def write(results: Results) -> None:
    """Update the page and its charts."""
    PAGE.write_text(page(PAGE.read_text(), results))
    CHARTS.mkdir(exist_ok=True)
    for name, chart in charts(results).items():
        (CHARTS / name).write_text(chart)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.report", description=__doc__)
    parser.add_argument("results", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("--show", action="store_true", help="only print the tables")
    given = parser.parse_args()
    results = load(given.results)
    if given.show:
        sys.stdout.write(all_parts(results))
    else:
        write(results)


if __name__ == "__main__":
    main()
