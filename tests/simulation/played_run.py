"""A run after its end, its STATEs, and the events as its judge sees them."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tap_audit_events.events.instants import (
    EARLIEST,
    Instant,
    later,
    parse_instant,
    whole_second,
)
from tests.simulation.histories import (
    ACTION_TYPES,
    Happening,
    PlannedRun,
)
from tests.simulation.network import Traffic


@dataclass(frozen=True)
class Acknowledged:
    """A STATE, and the records that it covers.

    Attributes:
        value: the STATE.
        covered: the ids delivered before it, by its run and by the runs that this one followed.
        forgotten: those of them that may be delivered again: a run ended out of order when it had
            delivered more of them than the memory holds, and its bookmark stayed before them.
        late: events before the bookmark that the run that passed them could not see.
        types: the action types delivered by every run that moved the bookmark, None for all.
    """

    value: dict[str, Any] = field(default_factory=dict)
    covered: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()
    late: frozenset[str] = frozenset()
    types: frozenset[str] | None = None

    @cached_property
    def _entry(self) -> dict[str, Any]:
        entry: dict[str, Any] = self.value.get("bookmarks", {}).get("audit_events", {})
        return entry

    @cached_property
    def bookmark(self) -> Instant | None:
        text = self._entry.get("replication_key_value")
        return None if text is None else parse_instant(text)

    @cached_property
    def ids_from(self) -> Instant:
        """The instant from which on all ids are known."""
        if self.bookmark is None:
            return EARLIEST
        return parse_instant(self._entry["watermark"][0]["ids_from"])

    @cached_property
    def covered_from(self) -> Instant | None:
        """The instant from which on everything up to the bookmark was read."""
        if self.bookmark is None:
            return None
        text = self._entry["watermark"][0].get("covered_from")
        return None if text is None else parse_instant(text)

    @cached_property
    def last_types(self) -> list[str]:
        """The action types that were requested by the run that wrote it; none of them means all."""
        if self.bookmark is None:
            return []
        types: list[str] = self._entry["watermark"][0]["action_types"]
        return types

    @cached_property
    def last_excluded(self) -> list[str]:
        """The action types that the run that wrote it left out."""
        if self.bookmark is None:
            return []
        types: list[str] = self._entry["watermark"][0].get("exclude_action_types", [])
        return types

    @cached_property
    def id_count(self) -> int:
        """The number of ids in it: digests of eight bytes as base64."""
        if self.bookmark is None:
            return 0
        return sum(len(text) * 3 // 4 // 8 for _, text in self._entry["watermark"][0]["ids"])


class Expected:
    """An event as the judge sees it."""

    def __init__(self, happening: Happening) -> None:
        self.event = happening.event
        self.id: str = happening.event["id"]
        self.type: str = happening.event["action"]["type"]
        self.instant = parse_instant(happening.event["occurredAt"])
        self.visible_at = happening.visible_at


@dataclass
class PlayedRun:
    """What one organization's judge knows of a run after its end.

    Attributes:
        planned: how it was set up.
        given: the STATE it started from.
        started_at: seconds after the start of the history.
        now: the tap's own clock at that time.
        traffic: the requests for the organization.
        arrived: the records that arrived.
        states: each STATE that arrived, its length, and how many records arrived before it.
        ended: what ended it early, None if it was complete.
        warnings: the warnings that it logged.
    """

    planned: PlannedRun
    given: Acknowledged
    started_at: float
    now: Instant
    traffic: Traffic
    arrived: list[dict[str, Any]]
    states: list[tuple[dict[str, Any], int, int]]
    last_kind: str
    ended: BaseException | None
    ended_at: float
    waited_seconds: float
    warnings: list[str]

    @property
    def lookback_seconds(self) -> int:
        seconds: int = self.planned.settings["lookback_seconds"]
        return seconds

    @property
    def most_without_state(self) -> int:
        """Records between two small STATEs: those of a page, or of a batch file."""
        settings = self.planned.settings
        batch_size: int = settings.get("batch_config", {}).get("batch_size", 0)
        page_size: int = settings["page_size"]
        return max(page_size, batch_size)

    @cached_property
    def start_date(self) -> Instant:
        text = self.planned.settings.get("start_date")
        return parse_instant(text) if text else EARLIEST

    @cached_property
    def lookback_start(self) -> Instant:
        bookmark = self.given.bookmark or EARLIEST
        return whole_second(later(bookmark, seconds=-self.lookback_seconds))

    @cached_property
    def range_start(self) -> Instant:
        """The later of `start_date` and the bookmark minus the lookback, as far as ids reach."""
        if self.given.bookmark is None:
            return self.start_date
        return max(self.start_date, self.lookback_start, self.given.ids_from)

    @cached_property
    def range_end(self) -> Instant:
        """The earlier of `end_date` and the second in which the run started."""
        text = self.planned.settings.get("end_date")
        now = whole_second(self.now)
        return min(now, parse_instant(text)) if text else now

    def requests(self, event: Expected) -> bool:
        return event.type in self.planned.settings.get("action_types", ACTION_TYPES)

    def delivers(self, event: Expected) -> bool:
        return self.types is None or event.type in self.types

    def passes(self, event: Expected) -> bool:
        """Whether the run may read an event and leave it out, as its type is excluded."""
        return (
            event.visible_at <= self.ended_at
            and self.requests(event)
            and not self.delivers(event)
            and self.range_start <= event.instant <= self.range_end
        )

    @cached_property
    def types(self) -> frozenset[str] | None:
        """The action types that the run requests and does not exclude, None for all."""
        settings = self.planned.settings
        if settings.keys().isdisjoint({"action_types", "exclude_action_types"}):
            return None
        types = frozenset(settings.get("action_types", ACTION_TYPES))
        return types.difference(settings.get("exclude_action_types", ()))

    def wants(self, event: Expected) -> bool:
        """Whether the run would deliver an event, if it began at the oldest one."""
        return (
            event.visible_at <= self.started_at
            and self.delivers(event)
            and event.instant <= self.range_end
        )

    def owes(self, event: Expected) -> bool:
        """Whether the run has to deliver an event, if no run before it has."""
        return self.wants(event) and self.range_start <= event.instant

    def has_warned(self, beginning: str) -> bool:
        return any(line.startswith(beginning) for line in self.warnings)
