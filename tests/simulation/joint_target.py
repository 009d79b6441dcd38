"""The target of runs of several organizations, and the part of a STATE that belongs to one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tap_audit_events.events.stream_names import COVERAGE_STREAM
from tests.simulation.world import Target


@dataclass(frozen=True)
class CoverageRecord:
    """A coverage record that arrived.

    Attributes:
        record: the record.
        arrived: how many records of events arrived before it.
        states: how many STATEs arrived before it.
    """

    record: dict[str, Any]
    arrived: int
    states: int


class JointTarget(Target):
    """A loader with two tables.

    Attributes:
        coverage: the coverage records of the present run.
    """

    def begin(self) -> None:
        super().begin()
        self.coverage: list[CoverageRecord] = []

    def _receive(self, message: dict[str, Any], length: int) -> None:
        if message.get("stream") != COVERAGE_STREAM:
            super()._receive(message, length)
            return
        self.last_kind = message["type"]
        if message["type"] == "RECORD":
            found = CoverageRecord(message["record"], len(self.arrived), len(self.states))
            self.coverage.append(found)


def part_of(state: dict[str, Any], organization_id: str) -> dict[str, Any]:
    """The bookmark of an organization in a STATE, empty if it has none."""
    stream = state.get("bookmarks", {}).get("audit_events", {})
    for partition in stream.get("partitions", ()):
        if partition["context"]["organization_id"] == organization_id:
            return {name: each for name, each in partition.items() if name != "context"}
    owners = {each["organization_id"] for each in _entries(stream)}
    return (
        {name: each for name, each in stream.items() if name != "partitions"}
        if organization_id in owners
        else {}
    )


def owner_at_top(state: dict[str, Any]) -> str | None:
    """The organization whose bookmark stands at the top, as a run for it alone writes it."""
    stream = state.get("bookmarks", {}).get("audit_events", {})
    return next((each["organization_id"] for each in _entries(stream)), None)


def _entries(bookmark: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from bookmark.get("watermark", ())
    yield from bookmark.get("coverage", ())


def as_single(part: dict[str, Any]) -> dict[str, Any]:
    """The STATE of a run for one organization with this bookmark."""
    return {"bookmarks": {"audit_events": part}} if part else {}
