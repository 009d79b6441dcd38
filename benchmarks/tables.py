"""The generated parts of `docs/performance.md`: tables, and notes about the run."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from benchmarks.candidates import CANDIDATES
from benchmarks.figures import START_UP, Figures, Runs, memory_runs, runs_of
from benchmarks.results import (
    ALL_QUIET,
    DEFAULT_REPETITIONS,
    FAR_EARLIER,
    LARGE_AMONG_QUIET,
    Content,
    Results,
)
from benchmarks.suite import DLT_LOAD, EXPORTS
from benchmarks.targets import OWN, Target, targets


def _table(head: str, rows: Iterable[Sequence[str]]) -> str:
    columns = head.split("|")
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1), *rows]
    return "".join(f"| {' | '.join(cell.strip() for cell in line)} |\n" for line in lines)


def label(candidate: str) -> str:
    return CANDIDATES[candidate].label


def note(figures: Figures) -> str:
    """Return a warning about a trial run or few repetitions; it is empty after a full run."""
    results = figures.results
    repetitions = f"{results.repetitions} repetition{'s' * (results.repetitions > 1)}"
    if results.scale < 1:
        return (
            f"**This page shows a trial run: {results.scale:.0%} of the events, {repetitions}. It"
            " shows that everything works. Its figures say nothing about speed or memory.**\n"
        )
    if results.repetitions < DEFAULT_REPETITIONS:
        return (
            f"These figures are from {repetitions}, fewer than the default of"
            f" {DEFAULT_REPETITIONS}; they vary more from run to run.\n"
        )
    return ""


def machine_table(figures: Figures) -> str:
    results = figures.results
    facts = {
        "date": results.date,
        **results.machine,
        "repetitions": str(results.repetitions),
        "bytes per event": _bytes_per_event(results),
        **results.versions,
    }
    return _table("what|", list(facts.items()))


def _bytes_per_event(results: Results) -> str:
    sizes = [
        each.output_bytes / each.records for each in results.checks if each.candidate == "bare"
    ]
    return f"{sizes[0]:.0f}" if sizes else ""


def targets_table(figures: Figures) -> str:
    rows = [_target_row(figures, each) for each in targets(figures)]
    return _table("|must be|measured|reached", rows)


def _target_row(figures: Figures, target: Target) -> list[str]:
    is_reached = "" if target.holds is None else "yes" if target.holds else "**no**"
    return [
        target.text,
        _bound(target),
        f"{_number(target.measured)} {target.unit}",
        _unless_trial(figures, is_reached),
    ]


def _unless_trial(figures: Figures, verdict: str) -> str:
    """Return the verdict on a full run; a trial run has no verdict."""
    return verdict if figures.results.scale >= 1 else "(trial)"


def _bound(target: Target) -> str:
    side = "at least" if target.at_least else "at most"
    return "" if target.bound is None else f"{side} {target.bound:,g} {target.unit}"


def _number(value: float) -> str:
    """Write a count with all digits, and any other value with one or two decimals."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2f}" if value < 10 else f"{value:,.1f}"


def simplicity_table(figures: Figures) -> str:
    """The cost of simpler code: the figures of the version before it, and those of this version."""
    rows = [
        [
            target.text,
            _number(target.earlier),
            _number(target.measured),
            _unless_trial(figures, f"{target.measured / target.earlier - 1:+.0%}"),
            _bound(target),
        ]
        for target in targets(figures)
        if target.earlier is not None
    ]
    return _table("|before|now|change|must be", rows)


def near_table(figures: Figures, scenarios: tuple[str, str]) -> str:
    """The candidates of the first scenario, and fast ones in the second, which has more events."""
    head = "0 ms per response|events|run, s|of it start-up, s|events/s after start-up|times usual"
    head += "|CPU s per 100,000 events|the sandbox's|peak MiB"
    rows = [_near_row(figures, *row, scenarios[0]) for row in runs_of(figures, *scenarios)]
    return _table(head, rows)


def _near_row(figures: Figures, scenario: str, name: str, usual: str) -> list[str]:
    events = figures.scenario(scenario).events
    cpu_seconds = figures.cpu_seconds(scenario, name) - figures.cpu_seconds(START_UP, name)
    service_cpu_seconds = figures.service_cpu_seconds(scenario, name)
    return [
        label(name),
        f"{events:,}",
        _with_spread(figures, scenario, name),
        f"{figures.seconds(START_UP, name):.2f}",
        f"{figures.events_per_second(scenario, name):,.0f}",
        _times_as_fast(figures, (scenario, name), (usual, "usual")),
        f"{cpu_seconds / events * 100_000:.2f}",
        f"{service_cpu_seconds / events * 100_000:.2f}",
        f"{figures.peak_mib(scenario, name):.0f}",
    ]


def remote_table(figures: Figures, scenario: str) -> str:
    measured = figures.scenario(scenario)
    head = f"{measured.milliseconds} ms per response, {measured.events:,} events"
    head += f"|run, s|after start-up, s|events/s after start-up|times {label(OWN)}|requests"
    rows = [
        [
            label(name),
            _with_spread(figures, scenario, name),
            f"{figures.after_start_up(scenario, name):.2f}",
            f"{figures.events_per_second(scenario, name):,.0f}",
            _times_as_fast(figures, (scenario, name), (scenario, OWN)),
            str(figures.requests(scenario, name)),
        ]
        for _, name in runs_of(figures, scenario)
    ]
    return _table(head, rows)


def in_flight_table(figures: Figures) -> str:
    scenario = figures.scenario("far-long")
    head = f"{scenario.milliseconds} ms per response, {scenario.events:,} events"
    head += "|events lie in|run, s|after start-up, s|times one in flight|requests"
    rows = [
        [
            label(name),
            _history(figures.scenario(scenario_name).content),
            _with_spread(figures, scenario_name, name),
            f"{figures.after_start_up(scenario_name, name):.2f}",
            _times_as_fast(figures, (scenario_name, name), ("far-long", "tap-1")),
            str(figures.requests(scenario_name, name)),
        ]
        for each in ("far-long", *FAR_EARLIER, "far-even")
        for scenario_name, name in runs_of(figures, each)
    ]
    return _table(head, rows)


def _history(content: Content) -> str:
    """Describe the times of the events of a content."""
    return f"{content.shape}{_earlier(content)}"


def _earlier(content: Content) -> str:
    return f", {content.hours_earlier} hours earlier" if content.hours_earlier else ""


def organizations_table(figures: Figures) -> str:
    """The runs that read several organizations, of which one has all the events."""
    rows = [
        [
            f"{content.organizations}",
            f"{content.events:,}",
            _with_spread(figures, scenario, name),
            f"{figures.after_start_up(scenario, name):.2f}",
            str(figures.requests(scenario, name)),
            f"{figures.peak_mib(scenario, name):.0f}",
        ]
        for each in (ALL_QUIET, LARGE_AMONG_QUIET)
        for scenario, name in runs_of(figures, each)
        for content in [figures.scenario(scenario).content]
    ]
    head = "organizations, 100 ms per response, eight in flight"
    head += "|events, all of one|run, s|after start-up, s|requests|peak MiB"
    return _table(head, rows)


def displaced_table(figures: Figures) -> str:
    """The ends of the runs against a service that returns one event too late, by shape."""
    runs = figures.results.displaced
    rows = []
    for shape in dict.fromkeys(run.case.shape for run in runs):
        of_shape = [run for run in runs if run.case.shape == shape]
        errors = [run for run in of_shape if run.error]
        silent = [run for run in of_shape if run.is_silent_loss]
        complete = len(of_shape) - len(errors) - len(silent)
        counts = (len(of_shape), complete, len(errors), len(silent))
        codes = ", ".join(sorted({f"`{run.error}`" for run in errors}))
        rows.append([shape, *map(str, counts), codes])
    return _table("events lie in|runs|complete|ended with an error|silent losses|errors", rows)


def memory_table(figures: Figures) -> str:
    earlier = [(each, "tap-8") for each in FAR_EARLIER if figures.measured(each, "tap-8")]
    rows = [
        [
            label(name),
            f"{figures.scenario(scenario).milliseconds}",
            f"{figures.scenario(scenario).events:,}{_earlier(figures.scenario(scenario).content)}",
            f"{figures.peak_mib(scenario, name):.0f}",
        ]
        for scenario, name in [*memory_runs(figures), *earlier]
    ]
    return _table("peak memory|ms per response|events|MiB", rows)


def start_up_table(figures: Figures) -> str:
    rows = [
        [label(name), f"{figures.seconds(scenario, name):.2f}"]
        for scenario, name in runs_of(figures, "commands")
    ]
    return _table("start-up|s", rows)


def quiet_table(figures: Figures) -> str:
    """The cost of a run that finds nothing new after an earlier one."""
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
    return _table("a run with nothing new|s|CPU s|requests|events delivered again", rows)


def _with_spread(figures: Figures, scenario: str, name: str) -> str:
    low, high = figures.spread(scenario, name)
    return f"{figures.seconds(scenario, name):.2f} ({low:.2f} to {high:.2f})"


def _times_as_fast(figures: Figures, one: Runs, other: Runs) -> str:
    is_known = figures.measured(*one) and figures.measured(*other)
    return f"{figures.times_as_fast(one, other):.2f}" if is_known else ""


def loads_table(figures: Figures) -> str:
    """Whole loads into files and tables, the fastest first."""
    loads = {
        f"tap and {each.case}": (each.events, figures.load_seconds(each.case))
        for each in figures.results.loads
    }
    for scenario, name in (*(("near-long", each) for each in EXPORTS), ("near", DLT_LOAD)):
        if figures.measured(scenario, name):
            events = figures.scenario(scenario).events
            loads[label(name)] = events, figures.seconds(scenario, name)
    rows = [
        (events / seconds, [name, f"{events:,}", f"{seconds:.1f}", f"{events / seconds:,.0f}"])
        for name, (events, seconds) in loads.items()
    ]
    return _table("into files and tables|events|s|events/s", [row for _, row in sorted(rows)[::-1]])


def steps_table(figures: Figures) -> str:
    """The microseconds for each event of whole runs after start-up, and of single steps."""
    runs = {
        f"{label(name)}, after start-up": figures.after_start_up("near-long", name)
        / figures.scenario("near-long").events
        * 1e6
        for name in ("bare", OWN)
        if figures.measured("near-long", name)
    }
    rows = [
        [name, f"{microseconds:.2f}"]
        for name, microseconds in (runs | figures.results.steps).items()
    ]
    return _table("a service that responds at once|µs per event", rows)


PARTS: Final[dict[str, Callable[[Figures], str]]] = {
    "note": note,
    "machine": machine_table,
    "targets": targets_table,
    "simplicity": simplicity_table,
    "near": partial(near_table, scenarios=("near", "near-long")),
    "near-gzip": partial(near_table, scenarios=("near-gzip", "near-long-gzip")),
    "mid": partial(remote_table, scenario="mid"),
    "mid-gzip": partial(remote_table, scenario="mid-gzip"),
    "far": partial(remote_table, scenario="far"),
    "far-gzip": partial(remote_table, scenario="far-gzip"),
    "in-flight": in_flight_table,
    "organizations": organizations_table,
    "displaced": displaced_table,
    "memory": memory_table,
    "loads": loads_table,
    "start-up": start_up_table,
    "quiet": quiet_table,
    "steps": steps_table,
}
"""The generated parts by their names on the page."""


def all_parts(results: Results) -> str:
    """Return all parts, one below the other."""
    figures = Figures(results)
    return "\n".join(filter(None, (part(figures) for part in PARTS.values())))
