"""What the tap must reach, and whether it does."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.figures import Figures

NOISE: Final = 1.05
"""What counts as no slower: two starts of the very same process differ by as much."""

OWN: Final = "tap-4"
"""The tap with its default settings."""


@dataclass(frozen=True)
class Target:
    """One bound; `at_least` tells on which side of it the measured value must lie."""

    text: str
    bound: float
    measured: float
    at_least: bool = True
    unit: str = "times"

    @property
    def holds(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound


def targets(figures: Figures) -> Iterator[Target]:
    """All whose candidates were measured."""
    if figures.measured("near-long", OWN, "bare", "plain"):
        yield from _moving_bytes(figures)
    if figures.measured("far-long", "tap-1", "tap-8"):
        yield _in_flight(figures)
    if figures.measured("near", "usual", "sdk-lane"):
        text = "events/s of the SDK lane, one field deselected, against the usual SDK tap"
        yield Target(text, 3, figures.times_as_fast(("near", "sdk-lane"), ("near", "usual")))
    yield from _memory(figures, "near-long", "near-short")
    yield from _memory(figures, "far-full", "far")
    yield from _rivals(figures)
    if figures.measured("commands", "sdk-import"):
        yield from _commands(figures)


def _moving_bytes(figures: Figures) -> Iterator[Target]:
    own = ("near-long", OWN)
    if figures.measured("near", "usual"):
        text = "events/s after start-up against the usual SDK tap"
        yield Target(text, 30, figures.times_as_fast(own, ("near", "usual")))
    for loop, how in (("plain", "by `response.content`"), ("bare", "at once")):
        ratio = 1 / figures.times_as_fast(own, ("near-long", loop))
        text = f"time after start-up against the bare fetch loop, each page read {how}"
        yield Target(text, 1.3, ratio, at_least=False)


def _in_flight(figures: Figures) -> Target:
    scenario = figures.scenario("far-long")
    milliseconds = scenario.latency_seconds * 1000
    text = f"eight in flight against one, {milliseconds:.0f} ms a reply, {scenario.events:,} events"
    return Target(text, 6.5, figures.times_as_fast(("far-long", "tap-8"), ("far-long", "tap-1")))


def _memory(figures: Figures, many: str, few: str) -> Iterator[Target]:
    if not figures.measured(many, "tap-8"):
        return
    peak, scenario = figures.peak_mib(many, "tap-8"), figures.scenario(many)
    milliseconds = scenario.latency_seconds * 1000
    text = (
        f"peak memory, {scenario.events:,} events, eight in flight, {milliseconds:.0f} ms a reply"
    )
    yield Target(text, 150, peak, at_least=False, unit="MiB")
    if figures.measured(few, "tap-8"):
        ratio = peak / figures.peak_mib(few, "tap-8")
        text = f"the same against {figures.scenario(few).events:,} events"
        yield Target(text, 1.1, ratio, at_least=False)


def _rivals(figures: Figures) -> Iterator[Target]:
    """Near, with the default settings; far, with eight in flight, as they have."""
    rivals = {"dlt": "dlt", "dlt-days": "dlt, days in parallel", "airbyte": "the Airbyte source"}
    for own, scenario in (("near-long", OWN), "near"), (("far", "tap-8"), "far"):
        milliseconds = figures.scenario(scenario).latency_seconds * 1000
        for rival, name in rivals.items():
            if figures.measured(scenario, rival) and figures.measured(*own):
                text = f"events/s after start-up against {name}, {milliseconds:.0f} ms a reply"
                yield Target(text, 1, figures.times_as_fast(own, (scenario, rival)))


def _commands(figures: Figures) -> Iterator[Target]:
    for command in ("version", "about"):
        ratio = figures.times_as_long(("commands", command), ("commands", "sdk-import"))
        text = f"start-up, `--{command}`, against the SDK's own import"
        yield Target(text, NOISE, ratio, at_least=False)
