"""The bounds that the tap must keep, and whether it keeps them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from benchmarks.displaced import CANDIDATE
from benchmarks.figures import START_UP, Figures
from benchmarks.lines import CORE, CORE_CODE, WHOLE, WHOLE_CODE
from benchmarks.results import ALL_QUIET, BATCH, COPY, FAR_EARLIER

NOISE: Final = 1.05
"""The tolerance of ratios that must not grow, and of numbers of lines."""

OWN: Final = "tap-4"
"""The tap with its default settings."""

NEAR: Final = (("near", "near-long", ""), ("near-gzip", "near-long-gzip", ", gzip"))
"""The scenarios of slow and of fast candidates at 0 ms, without and with gzip."""

REQUESTS: Final = {
    "even": "far-even",
    "office hours": "far-long",
    "one burst": "one burst",
    "bursts of seconds": "bursts of seconds",
    "ended a year ago": "ended a year ago",
    "ties": "ties",
    "3 pages": "3 pages",
    "no events": START_UP,
}
"""The scenarios whose requests are counted, by their names in the table."""

OTHER_TOOLS: Final = {
    "dlt": "dlt",
    "dlt-days": "dlt, days in parallel",
    "airbyte": "the Airbyte source",
}


@dataclass(frozen=True)
class Target:
    """One figure and its bound.

    Attributes:
        bound: None if the figure is only shown.
        at_least: Whether the figure must not be below the bound; otherwise it must not be above.
        earlier: The figure of the version before the core was simplified.
    """

    text: str
    bound: float | None
    measured: float
    at_least: bool = True
    unit: str = "times"
    earlier: float | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the bound is kept; None if there is no bound."""
        if self.bound is None:
            return None
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound


def targets(figures: Figures) -> Iterator[Target]:
    """Return all targets whose candidates were measured."""
    for slow, fast, how in NEAR:
        yield from _against_usual(figures, slow, fast, how)
        if figures.measured(fast, OWN, "bare"):
            ratio = 1 / figures.times_as_fast((fast, OWN), (fast, "bare"))
            text = f"time after start-up against the bare loop, 0 ms{how}"
            earlier = 1.06 if not how else None
            yield Target(text, 1.3, ratio, at_least=False, earlier=earlier)
    yield from _in_flight(figures)
    yield from _requests(figures)
    yield from _organizations(figures)
    yield from _displaced(figures)
    if figures.measured("near", "usual", "sdk-lane"):
        text = "events/s of the SDK lane, one field deselected, against the usual SDK tap"
        yield Target(text, 3, figures.times_as_fast(("near", "sdk-lane"), ("near", "usual")))
    if figures.measured("near-long", "shaped", OWN):
        text = "events/s with details as text and raw event, against plain records"
        yield Target(text, 0.5, figures.times_as_fast(("near-long", "shaped"), ("near-long", OWN)))
    yield from _exports(figures)
    if figures.measured("near-long", "own-airbyte", OWN):
        text = "events/s of the Airbyte source against the tap, 0 ms"
        ratio = figures.times_as_fast(("near-long", "own-airbyte"), ("near-long", OWN))
        yield Target(text, 0.5, ratio)
    if figures.results.loads:
        text = "events/s into PostgreSQL by batch files against RECORD messages, start-up included"
        yield Target(text, 2.5, figures.load_seconds(COPY) / figures.load_seconds(BATCH))
    yield from _memory(figures, "near-long", ["near-short"])
    yield from _memory(figures, "far-full", ["far-long", *FAR_EARLIER])
    yield from _against_other_tools(figures)
    yield from _commands(figures)
    yield from _lines(figures)


def _against_usual(figures: Figures, slow: str, fast: str, how: str) -> Iterator[Target]:
    text = f"events/s after start-up against the usual SDK tap, 0 ms{how}"
    if figures.measured(slow, "usual") and figures.measured(fast, OWN):
        ratio = figures.times_as_fast((fast, OWN), (slow, "usual"))
        yield Target(text, 20, ratio, earlier=30.1 if not how else None)
    if figures.measured(slow, "usual-msgspec") and figures.measured(fast, OWN):
        ratio = figures.times_as_fast((fast, OWN), (slow, "usual-msgspec"))
        yield Target(f"{text}, with the SDK's msgspec writer", None, ratio)


def _in_flight(figures: Figures) -> Iterator[Target]:
    long = [name for name in ("far-long", *FAR_EARLIER) if figures.measured(name, "tap-8")]
    for name, word, bound, earlier in (("tap-8", "eight", 5.5, 6.61), ("tap-4", "four", 3.2, 3.37)):
        if figures.measured("far-long", "tap-1", name):
            scenario = figures.scenario("far-long")
            text = (
                f"{word} in flight against one, {scenario.milliseconds} ms, {scenario.pages} pages,"
                f" mean of {len(long)} histories"
            )
            one = ("far-long", "tap-1")
            ratio = fmean(figures.times_as_fast((each, name), one) for each in long)
            yield Target(text, bound, ratio, earlier=earlier)
    if long and figures.measured("far-even", "tap-8"):
        even = ("far-even", "tap-8")
        ratio = fmean(1 / figures.times_as_fast((each, "tap-8"), even) for each in long)
        text = "time after start-up, office hours against even data, eight in flight, 100 ms"
        yield Target(text, 1.2, ratio, at_least=False)


def _exports(figures: Figures) -> Iterator[Target]:
    for name, where in (("export-parquet", "Parquet"), ("export-duckdb", "DuckDB")):
        if figures.measured("near-long", name):
            rate = figures.events_per_second("near-long", name)
            text = f"events/s of `audit-events export` to {where}, 1,000,000 events, 0 ms"
            yield Target(text, 60_000, rate, unit="events/s")
            peak = figures.peak_mib("near-long", name)
            text = f"peak memory of `audit-events export` to {where}, 1,000,000 events"
            yield Target(text, 300, peak, at_least=False, unit="MiB")
    if figures.measured("near", "dlt-duckdb") and figures.measured("near-long", "export-duckdb"):
        ratio = figures.times_as_fast(("near-long", "export-duckdb"), ("near", "dlt-duckdb"))
        yield Target("events/s of the export to DuckDB against dlt's pipeline", 8, ratio)


def _requests(figures: Figures) -> Iterator[Target]:
    for shape, name in REQUESTS.items():
        if figures.measured(name, "tap-8"):
            pages = figures.scenario(name).pages
            sent = figures.requests(name, "tap-8")
            text = f"requests, {shape}, n = {pages}, at most 1.25 n + 3"
            yield Target(text, 1.25 * pages + 3, sent, at_least=False, unit="requests")


def _organizations(figures: Figures) -> Iterator[Target]:
    if not figures.measured(ALL_QUIET, CANDIDATE):
        return
    content = figures.scenario(ALL_QUIET).content
    of_several = f"{content.organizations} quiet organizations, 100 ms, eight in flight"
    least = content.organizations * content.latency_seconds / 8
    text = f"time after start-up against {least:g} s, {of_several}"
    yield Target(text, 1.3, figures.after_start_up(ALL_QUIET, CANDIDATE) / least, at_least=False)
    sent, most = figures.requests(ALL_QUIET, CANDIDATE), content.organizations
    yield Target(f"requests, {of_several}", most, sent, at_least=False, unit="requests")


def _displaced(figures: Figures) -> Iterator[Target]:
    runs = figures.results.displaced
    if not runs:
        return
    of_runs = f"of {len(runs)}"
    where = "one event out of order, eight in flight"
    silent = sum(run.is_silent_loss for run in runs)
    yield Target(f"silent losses, {where}", 0, silent, at_least=False, unit=of_runs)
    repeated = sum(run.repeated > 0 for run in runs)
    yield Target(f"runs with repeated events, {where}", 0, repeated, at_least=False, unit=of_runs)
    failed = sum(run.error is not None for run in runs)
    yield Target(f"runs that end with an error that says so, {where}", None, failed, unit=of_runs)


def _memory(figures: Figures, many: str, few: Sequence[str]) -> Iterator[Target]:
    if not figures.measured(many, CANDIDATE):
        return
    peak, scenario = figures.peak_mib(many, CANDIDATE), figures.scenario(many)
    text = f"peak memory, {scenario.events:,} events, eight in flight, {scenario.milliseconds} ms"
    yield Target(text, 150, peak, at_least=False, unit="MiB")
    histories = [each for each in few if figures.measured(each, CANDIDATE)]
    if histories:
        # How full the buffer becomes in a short run depends on where its nights and weekends lie.
        ratio = peak / max(figures.peak_mib(each, CANDIDATE) for each in histories)
        text = f"the same against {figures.scenario(histories[0]).events:,} events"
        of_all = f", largest of {len(histories)} histories" if len(histories) > 1 else ""
        yield Target(f"{text}{of_all}", 1.1, ratio, at_least=False)


def _against_other_tools(figures: Figures) -> Iterator[Target]:
    """Compare the tap with its default settings with the other tools."""
    remote = (("mid", ""), ("mid-gzip", ", gzip"), ("far", ""), ("far-gzip", ", gzip"))
    for theirs, ours, how in (*NEAR, *((each, each, how) for each, how in remote)):
        for tool, name in OTHER_TOOLS.items():
            if figures.measured(theirs, tool) and figures.measured(ours, OWN):
                milliseconds = figures.scenario(theirs).milliseconds
                text = f"events/s after start-up against {name}, {milliseconds} ms{how}"
                yield Target(text, 1, figures.times_as_fast((ours, OWN), (theirs, tool)))


def _commands(figures: Figures) -> Iterator[Target]:
    for command in ("version", "about"):
        if figures.measured("commands", "sdk-import", command):
            ratio = figures.times_as_long(("commands", command), ("commands", "sdk-import"))
            text = f"start-up, `--{command}`, against the SDK's own import"
            yield Target(text, NOISE, ratio, at_least=False)


def _lines(figures: Figures) -> Iterator[Target]:
    for part, code, text, about, earlier in (
        (CORE, CORE_CODE, "lines of `extraction/` and `service/` together", 1700, 2340),
        (WHOLE, WHOLE_CODE, "lines of the tap, without other faces and the sandbox", 5400, 6058),
    ):
        yield Target(
            f"{text}, about {about:,}",
            NOISE * about,
            figures.results.lines[part],
            at_least=False,
            unit="lines",
            earlier=earlier,
        )
        alone = f"{text}, without blank lines, comments and docstrings"
        yield Target(alone, None, figures.results.lines[code], unit="lines")
