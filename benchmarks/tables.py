"""The tables of `docs/performance.md`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from benchmarks.candidates import CANDIDATES
from benchmarks.figures import START_UP, Figures, Runs, memory_runs, near_runs, runs_of
from benchmarks.results import Results
from benchmarks.targets import Target, targets


def _table(head: str, rows: Iterable[Sequence[str]]) -> str:
    columns = head.split("|")
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1), *rows]
    return "".join(f"| {' | '.join(cell.strip() for cell in line)} |\n" for line in lines)


def label(candidate: str) -> str:
    return CANDIDATES[candidate].label


def machine_table(figures: Figures) -> str:
    results = figures.results
    facts = {
        "date": results.date,
        **results.machine,
        "repetitions": str(results.repetitions),
        "bytes an event": _bytes_an_event(results),
        **results.versions,
    }
    return _table("what|", list(facts.items()))


def _bytes_an_event(results: Results) -> str:
    sizes = [
        each.output_bytes / each.records for each in results.checks if each.candidate == "bare"
    ]
    return f"{sizes[0]:.0f}" if sizes else ""


def targets_table(figures: Figures) -> str:
    return _table("|must be|measured|holds", [_target_row(each) for each in targets(figures)])


def _target_row(target: Target) -> list[str]:
    side = "at least" if target.at_least else "at most"
    measured = f"{target.measured:.2f}" if target.measured < 10 else f"{target.measured:.1f}"
    return [
        target.text,
        f"{side} {target.bound:g} {target.unit}",
        f"{measured} {target.unit}",
        "yes" if target.holds else "**no**",
    ]


def near_table(figures: Figures) -> str:
    head = "0 ms a reply|events|run, s|of it start-up, s|events/s after start-up|times usual"
    head += "|CPU s for 100,000 events|the sandbox's|peak MiB"
    return _table(head, [_near_row(figures, *row) for row in near_runs(figures)])


def _near_row(figures: Figures, scenario: str, name: str) -> list[str]:
    events = figures.scenario(scenario).events
    cpu_seconds = figures.cpu_seconds(scenario, name) - figures.cpu_seconds(START_UP, name)
    service_cpu_seconds = figures.service_cpu_seconds(scenario, name)
    return [
        label(name),
        f"{events:,}",
        _with_spread(figures, scenario, name),
        f"{figures.seconds(START_UP, name):.2f}",
        f"{figures.events_a_second(scenario, name):,.0f}",
        _times_usual(figures, (scenario, name), "near"),
        f"{cpu_seconds / events * 100_000:.2f}",
        f"{service_cpu_seconds / events * 100_000:.2f}",
        f"{figures.peak_mib(scenario, name):.0f}",
    ]


def far_table(figures: Figures) -> str:
    scenario = figures.scenario("far")
    head = f"{scenario.latency_seconds * 1000:.0f} ms a reply, {scenario.events:,} events"
    head += "|run, s|after start-up, s|events/s after start-up|times usual|requests"
    return _table(head, [_far_row(figures, *row) for row in runs_of(figures, "far")])


def _far_row(figures: Figures, scenario: str, name: str) -> list[str]:
    return [
        label(name),
        _with_spread(figures, scenario, name),
        f"{figures.after_start_up(scenario, name):.2f}",
        f"{figures.events_a_second(scenario, name):,.0f}",
        _times_usual(figures, (scenario, name), "far"),
        str(figures.requests(scenario, name)),
    ]


def in_flight_table(figures: Figures) -> str:
    scenario = figures.scenario("far-long")
    head = f"{scenario.latency_seconds * 1000:.0f} ms a reply, {scenario.events:,} events"
    head += "|run, s|after start-up, s|times one in flight|requests"
    return _table(head, [_in_flight_row(figures, *row) for row in runs_of(figures, "far-long")])


def _in_flight_row(figures: Figures, scenario: str, name: str) -> list[str]:
    one = (scenario, "tap-1")
    ratio = figures.times_as_fast((scenario, name), one) if figures.measured(*one) else 0
    return [
        label(name),
        _with_spread(figures, scenario, name),
        f"{figures.after_start_up(scenario, name):.2f}",
        f"{ratio:.2f}",
        str(figures.requests(scenario, name)),
    ]


def memory_table(figures: Figures) -> str:
    rows = [
        [
            label(name),
            f"{figures.scenario(scenario).latency_seconds * 1000:.0f}",
            f"{figures.scenario(scenario).events:,}",
            f"{figures.peak_mib(scenario, name):.0f}",
        ]
        for scenario, name in memory_runs(figures)
    ]
    return _table("peak memory|ms a reply|events|MiB", rows)


def start_up_table(figures: Figures) -> str:
    rows = [
        [label(name), f"{figures.seconds(scenario, name):.2f}"]
        for scenario, name in runs_of(figures, "commands")
    ]
    return _table("start-up|s", rows)


def quiet_table(figures: Figures) -> str:
    """What a run costs that finds nothing new after an earlier one."""
    again = {
        each.candidate: each.records for each in figures.results.checks if each.scenario == "quiet"
    }
    rows = [
        [
            label(name),
            f"{figures.seconds(scenario, name):.2f}",
            f"{figures.cpu_seconds(scenario, name):.2f}",
            str(figures.requests(scenario, name)),
            str(again[name]),
        ]
        for scenario, name in runs_of(figures, "quiet")
    ]
    return _table("a run with nothing new|s|CPU s|requests|events emitted again", rows)


def _with_spread(figures: Figures, scenario: str, name: str) -> str:
    low, high = figures.spread(scenario, name)
    return f"{figures.seconds(scenario, name):.2f} ({low:.2f} to {high:.2f})"


def _times_usual(figures: Figures, row: Runs, scenario: str) -> str:
    usual = (scenario, "usual")
    return f"{figures.times_as_fast(row, usual):.1f}" if figures.measured(*usual) else ""


TABLES: Final[dict[str, Callable[[Figures], str]]] = {
    "machine": machine_table,
    "targets": targets_table,
    "near": near_table,
    "far": far_table,
    "in-flight": in_flight_table,
    "memory": memory_table,
    "start-up": start_up_table,
    "quiet": quiet_table,
}
"""By the name of their place on the page."""


def all_tables(results: Results) -> str:
    """Every table, one below the other."""
    figures = Figures(results)
    return "\n".join(table(figures) for table in TABLES.values())
