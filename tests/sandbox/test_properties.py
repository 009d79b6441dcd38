"""Properties that hold for all events and all requests."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.sandbox import Service
from tap_audit_events.sandbox.server import SandboxServer
from tests.builders import an_event
from tests.sandbox.client import Client

BASE = datetime(2024, 2, 28, 23, 59, 58, tzinfo=UTC)


@dataclass(frozen=True)
class Time:
    """An exact time, and one text that means it."""

    seconds: int
    digits: str
    offset_minutes: int

    @property
    def exact(self) -> Fraction:
        return Fraction(f"{self.seconds}.{self.digits or 0}")

    @property
    def text(self) -> str:
        local = BASE + timedelta(seconds=self.seconds, minutes=self.offset_minutes)
        fraction = f".{self.digits}" if self.digits else ""
        hours, minutes = divmod(abs(self.offset_minutes), 60)
        sign = "-" if self.offset_minutes < 0 else "+"
        offset = f"{sign}{hours:02}:{minutes:02}" if self.offset_minutes else "Z"
        return f"{local:%Y-%m-%dT%H:%M:%S}{fraction}{offset}"


@dataclass(frozen=True)
class Held:
    """An event that the service holds."""

    id: str
    time: Time
    type: str


@dataclass(frozen=True)
class Export:
    """The parameters of an export; only those with a value are sent."""

    size: int
    order: str | None
    start: Time | None
    end: Time | None
    types: frozenset[str] | None

    @property
    def parameters(self) -> dict[str, str]:
        given: dict[str, str | None] = {
            "pageSize": str(self.size),
            "order": self.order,
            "startTime": self.start.text if self.start else None,
            "endTime": self.end.text if self.end else None,
            "actionTypes": ",".join(sorted(self.types)) if self.types else None,
        }
        return {name: value for name, value in given.items() if value is not None}

    def expected(self, events: list[Held]) -> list[str]:
        """Return the ids that interface.md 4.1 promises."""
        found = [event for event in events if self._selects(event)]
        found.sort(key=lambda event: (event.time.exact, event.id), reverse=self.order != "asc")
        return [event.id for event in found]

    def _selects(self, event: Held) -> bool:
        return (
            (self.start is None or event.time.exact >= self.start.exact)
            and (self.end is None or event.time.exact <= self.end.exact)
            and (self.types is None or event.type in self.types)
        )

    @property
    def is_allowed(self) -> bool:
        return self.start is None or self.end is None or self.start.exact <= self.end.exact


TYPES = st.sampled_from(["one", "two", "three"])
TIMES = st.builds(
    Time,
    st.integers(0, 4),
    st.sampled_from(["", "0", "5", "50", "500000000001", "49", "000", "9999999999999"]),
    st.sampled_from([0, 0, 60, -330, 1439, -1439]),
)
EVENTS = st.lists(
    st.builds(Held, st.text("abAB-é🎉", min_size=1, max_size=3), TIMES, TYPES),
    max_size=30,
    unique_by=lambda event: event.id,
)
EXPORTS = st.builds(
    Export,
    st.integers(1, 9),
    st.sampled_from(["asc", "desc", None]),
    st.none() | TIMES,
    st.none() | TIMES,
    st.none() | st.frozensets(TYPES, min_size=1),
)


@given(events=EVENTS, export=EXPORTS.filter(lambda export: export.is_allowed))
def test_the_pages_joined_are_the_selected_events_in_order(
    server: SandboxServer, events: list[Held], export: Export
) -> None:
    """4.1: each event is served once, in order; every page but the last is full."""
    service = server.service = Service()
    service.add(an_event(event.id, event.time.text, event.type) for event in events)
    with Client(server.base_url, service) as client:
        pages = client.pages(**export.parameters)
    assert [event_id for page in pages for event_id in page] == export.expected(events)
    assert all(len(page) == export.size for page in pages[:-1])
    assert pages[-1] or len(pages) == 1
    assert service.violations == []


@given(
    events=EVENTS,
    split=st.integers(0, 30),
    size=st.integers(1, 9),
    faults=st.lists(
        st.sampled_from(["empty@{}", "short:events=0@{}", "short:events=1@{}", "null-cursor@{}"]),
        max_size=4,
    ),
)
def test_faults_of_pages_and_the_order_of_additions_do_not_change_the_events(
    server: SandboxServer, events: list[Held], split: int, size: int, faults: list[str]
) -> None:
    """With empty and short pages, each event is served once; events may be added in any order."""
    specs = [fault.format(number) for number, fault in enumerate(faults, 1)]
    service = server.service = Service(faults=specs)
    for part in (events[split:], events[:split]):
        service.add(an_event(event.id, event.time.text, event.type) for event in part)
    with Client(server.base_url, service) as client:
        ids = client.ids(pageSize=size, order="asc")
    assert ids == Export(size, "asc", None, None, None).expected(events)
