"""`AuditEvents.pages` delivers each event once and in order, over runs that continue a state."""

import json
import random
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tap_audit_events import (
    AuditEvents,
    EventPage,
    SettingsError,
)
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.sandbox import Fault, Service
from tests.api.logs import COUNT, events, expected, first_pages, ids, stored
from tests.builders import an_event
from tests.loaders import hostile
from tests.shared_server import an_id

SECOND = datetime(2024, 5, 6, 7, 0, 30, tzinfo=UTC)

FAULTS = {
    "none": [],
    "errors": ["status:code=503@*/3", "reset@*/7", "cut@*/5"],
    "429": ["status:code=429,retry-after=0@3,7"],
    "out of order": ["displaced:places=30,event=80@*"],
    "short and empty pages": ["short:events=3@*/2", "empty@*/3"],
    "cursors": ["expire@4", "expire@9", "null-cursor@*"],
    "ignored bounds": ["ignore-start@*", "ignore-end@*"],
}


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries are sent without a wait."""
    monkeypatch.setattr("backoff.full_jitter", lambda seconds: 0.0)


@pytest.fixture
def log(service: Service, settings: dict[str, Any]) -> AuditEvents:
    return AuditEvents(**settings, page_size=20)


def test_a_last_page_without_events_completes_a_range_out_of_order(
    service: Service, settings: dict[str, Any]
) -> None:
    """The last state covers all events that were read; the next call requests only later ones."""
    service.add(events(0, 45))
    service.add_faults(
        ["displaced:places=3,event=5@1", Fault(kind="body", text=b'{"auditEvents": []}', when="3")]
    )
    log = AuditEvents(**settings, page_size=20, concurrency=1, lookback_seconds=5)
    pages = list(log.pages())
    assert [len(page) for page in pages] == [20, 20, 0]
    assert sorted(ids(pages)) == expected(40)
    assert ids(log.pages(state=stored(pages[-1].state))) == expected(45)[40:]
    assert len(service.requests) == 4


def test_a_page_of_excluded_events_has_only_a_state(
    service: Service, settings: dict[str, Any]
) -> None:
    """A call that continues there does not read them again."""
    service.add([an_event(id="x", at="2024-05-06T07:00:00Z", action_type="b"), *events(1, 45)])
    log = AuditEvents(**settings, page_size=20, exclude_action_types=["workspace_create"])
    pages = list(log.pages())
    assert [(len(page), page.excluded) for page in pages] == [(1, 19), (0, 20), (0, 5)]
    state = stored(pages[-1].state)
    service.requests.clear()
    later = AuditEvents(**settings, lookback_seconds=0, exclude_action_types=["workspace_create"])
    assert not list(later.pages(state=state))
    assert service.requests[0].params["startTime"] == "2024-05-06T07:00:44Z"


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_a_crash_after_any_page_neither_loses_nor_repeats(
    name: str, seed: int, service: Service, settings: dict[str, Any]
) -> None:
    """A state covers its page and all pages before it, but not those that were prefetched."""
    rng = random.Random(seed)
    service.add(events(0, COUNT))
    service.add_faults(FAULTS[name])
    found: list[str] = []
    state: dict[str, Any] | None = None
    while True:
        log = AuditEvents(
            **settings,
            page_size=rng.choice([10, 20, 33]),
            concurrency=rng.choice([1, 4]),
            max_retries=20,  # one request may meet many of the faults
        )
        more, state = first_pages(log, rng.randint(1, 8), state)
        if not more:
            break
        found += more
    assert sorted(found) == expected()


def test_the_state_of_a_page_does_not_change_later(service: Service, log: AuditEvents) -> None:
    """More pages may be read before the state is used."""
    service.add(events(0, COUNT))
    pages = list(log.pages())
    for number in (0, 3, len(pages) - 2):
        rest = ids(log.pages(state=pages[number].state))
        assert ids(pages[: number + 1]) + rest == expected()


def test_a_run_without_new_events_has_no_page(service: Service, log: AuditEvents) -> None:
    """The run sends one request, and the stored state remains valid."""
    service.add(events(0, 10))
    *_, last = log.pages()
    requests = len(service.requests)
    assert list(log.pages(state=last.state)) == []
    assert len(service.requests) == requests + 1


@pytest.mark.parametrize("state", [None, {}])
def test_an_empty_service_has_no_pages(log: AuditEvents, state: dict[str, Any] | None) -> None:
    assert list(log.pages(state=state)) == []


def test_hostile_events_keep_every_digit_and_field(service: Service, log: AuditEvents) -> None:
    """`raw` has the bytes of the service, and `events` has the same contents."""
    texts = hostile.texts()
    service.add_raw(texts)
    sent = {json.loads(text)["id"]: text for text in texts}
    pages = list(log.pages())
    raw = {json.loads(text)["id"]: text for page in pages for text in page.raw}
    decoded = {event["id"]: event for page in pages for event in page.events}
    assert raw.keys() == decoded.keys() == sent.keys()
    for event_id in sent.keys() - {"NUL", "lone surrogate", "offset"}:
        assert raw[event_id] == sent[event_id]
    digits = decoded["exact decimal"]["action"]["details"]
    assert "0.1000000000000000000000000000000000001" in str(digits)
    assert all(b"\n" not in text for text in raw.values())


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (SECOND, SECOND + timedelta(seconds=9)),
        ("2024-05-06T09:00:30+02:00", SECOND.astimezone(timezone(timedelta(hours=-3)))
         + timedelta(seconds=9)),
        (SECOND - timedelta(microseconds=1), "2024-05-06T07:00:39.999999999Z"),
    ],
)  # fmt: skip
def test_both_bounds_of_a_range_are_inclusive(
    start: datetime | str, end: datetime | str, service: Service, log: AuditEvents
) -> None:
    """A bound is a datetime or a text, with any offset."""
    service.add(events(0, 100))
    assert ids(log.pages(start=start, end=end)) == expected()[30:40]


def test_the_arguments_of_a_call_replace_the_settings(
    service: Service, settings: dict[str, Any]
) -> None:
    service.add(events(0, 100))
    log = AuditEvents(**settings, start_date=SECOND, end_date="2024-05-06T07:00:39Z")
    assert ids(log.pages()) == expected()[30:40]
    assert ids(log.pages(start="2024-05-06T07:00:35Z")) == expected()[35:40]
    assert ids(log.pages(end=SECOND)) == expected()[30:31]


BEFORE_START = "end or end_date is before start or start_date"


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"start": datetime(2024, 5, 6)}, "start has no time zone"),  # noqa: DTZ001
        ({"end": "yesterday"}, "end is not an RFC 3339 date-time"),
        ({"end": 5}, "end must be a string: a time such as "),
        ({"start": SECOND, "end": "2024-05-06T07:00:29Z"}, BEFORE_START),
    ],
)
def test_a_bound_that_cannot_be_used_is_refused_by_the_call(
    bounds: dict[str, Any], message: str, service: Service, log: AuditEvents
) -> None:
    """The error is raised before the first page is requested."""
    with pytest.raises(SettingsError, match=f"^AE-SETTINGS: {message}"):
        log.pages(**bounds)
    assert service.requests == []


@pytest.mark.parametrize(
    "state",
    [
        {"organization_id": "6f1d4c1e-7f0b-4f3a-9d35-000000000000", "action_types": []},
        {"bookmark": 1},
        {"bookmarks": {"audit_events": {"replication_key_value": "2024-05-06T07:00:29Z"}}},
        "{}",
        5,
    ],
)
def test_a_state_that_does_not_fit_is_refused_by_the_call(
    state: Any, service: Service, log: AuditEvents
) -> None:
    """The state has another shape, or belongs to another organization."""
    with pytest.raises(SettingsError, match=r"^AE-STATE: "):
        log.pages(state=state)
    assert service.requests == []


def test_a_page_without_events_is_true() -> None:
    """The page has a newer state: a loop that ends at a false page would end too early."""
    page = EventPage([], [], organization_id=an_id(0), shape=RecordShape(), state=dict)
    assert page
    assert len(page) == 0
