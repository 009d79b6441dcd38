"""The part of a STATE that belongs to one organization."""

from collections.abc import Iterator
from typing import Any


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
