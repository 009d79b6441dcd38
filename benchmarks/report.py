"""Generates the tables and the chart of `docs/performance.md` from `results.json`."""

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Final

from benchmarks.candidates import PROJECT, TOOLS
from benchmarks.charts import Bar, bar_chart
from benchmarks.loading import LOADS
from benchmarks.results import Results, load

DOCS: Final = PROJECT / "docs"
PAGE: Final = DOCS / "performance.md"
CHART: Final = DOCS / "charts" / "tools.svg"

SIZES: Final = (100_000, 1_000_000, 10_000_000)


def tools_table(results: Results) -> str:
    """Compare the tools: speed, memory, and a run with nothing new."""
    rows = []
    for name, candidate in TOOLS.items():
        near, far = results.find(name, 0), results.find(name, 100)
        row = [
            candidate.label,
            f"{near.events_per_second:,.0f}",
            f"{far.events_per_second:,.0f}",
            f"{max(near.peak_mib, far.peak_mib):.0f}",
        ]
        try:
            quiet = results.find(name, 0, is_quiet=True)
            row += [f"{quiet.seconds:.1f}", str(quiet.events)]
        except KeyError:
            row += ["keeps no state", ""]
        rows.append(row)
    head = (
        f"{results.find('tap-4', 0).events:,} events",
        "events/s, service responds at once",
        "events/s, 100 ms for each response",
        "peak memory, MiB",
        "run with nothing new, s",
        "events it delivers again",
    )
    return _table(head, rows)


def reading_table(results: Results) -> str:
    """The time to read events of 30 days, by latency and size."""
    rows = []
    for milliseconds in (20, 100, 300):
        for in_flight in (4, 8):
            figure = results.find(f"first load, tap-{in_flight}", milliseconds)
            times = (_duration(size / figure.events_per_second) for size in SIZES)
            rows.append([f"{milliseconds} ms, `concurrency: {in_flight}`", *times])
    return _table(["time of a response", *(f"{size:,} events" for size in SIZES)], rows)


def loading_table(results: Results) -> str:
    """The time to load events from a service that responds at once, by way and size."""
    rows = []
    for name, candidate in LOADS.items():
        figure = results.find(name, 0)
        rate = figure.events_per_second
        times = (_duration(size / rate) for size in SIZES)
        both = {name, f"{name}, many"}
        peak = max(each.peak_mib for each in results.figures if each.candidate in both)
        rows.append([candidate.label, f"{rate:,.0f}", f"{peak:.0f}", *times])
    sizes = (f"{size:,} events" for size in SIZES)
    return _table(["into", "events/s", "peak memory, MiB", *sizes], rows)


def machine_table(results: Results) -> str:
    facts = {
        "date": results.date,
        **results.machine,
        "repetitions": str(results.repetitions),
        **results.versions,
    }
    return _table(["what", ""], list(facts.items()))


PARTS: Final[dict[str, Callable[[Results], str]]] = {
    "tools": tools_table,
    "reading": reading_table,
    "loading": loading_table,
    "machine": machine_table,
}


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def chart(results: Results) -> str:
    """The tools against a service at a distance."""
    figures = [(candidate, results.find(name, 100)) for name, candidate in TOOLS.items()]
    return bar_chart(
        "Events per second, 100 ms for each response",
        [
            Bar(
                candidate.label.replace("`", ""),
                figure.events_per_second,
                f"{figure.events_per_second:,.0f}",
                candidate.is_own,
            )
            for candidate, figure in figures
        ],
    )


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
    for name, part in PARTS.items():
        text = generator().with_part(text, name, part(results))
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), load()))
    CHART.parent.mkdir(exist_ok=True)
    CHART.write_text(chart(load()))
