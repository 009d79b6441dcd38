"""`AuditEvents.pages`: each event once and in order, over runs that follow each other's state."""

import json
import pydoc
import random
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import pytest

import tap_audit_events
from tap_audit_events import (
    AuditEvents,
    AuditEventsError,
    ContractError,
    EventPage,
    OrganizationsError,
    RefusedError,
    RetryableError,
    ServiceError,
    SettingsError,
)
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.sandbox import Fault, Service
from tests.api.logs import events, first_pages, ids, stored
from tests.builders import an_event
from tests.loaders import hostile
from tests.shared_server import SHARED, SharedServer, a_service, an_id

COUNT = 150
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
    """Retries follow at once."""
    monkeypatch.setattr("backoff.full_jitter", lambda seconds: 0.0)


@pytest.fixture
def log(service: Service, settings: dict[str, Any]) -> AuditEvents:
    return AuditEvents(**settings, page_size=20)


def expected(count: int = COUNT) -> list[str]:
    return [f"{n:05}" for n in range(count)]


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("name", FAULTS)
def test_each_event_comes_once_whatever_the_service_does(
    name: str, concurrency: int, service: Service, settings: dict[str, Any]
) -> None:
    """Over two runs, and in order if the service keeps its own."""
    service.add(events(0, COUNT))
    service.add_faults(FAULTS[name])
    log = AuditEvents(**settings, page_size=20, concurrency=concurrency, max_retries=20)
    pages = list(log.pages())
    found = ids(pages)
    assert all(len(page) == len(page.events) == len(page.raw) <= 20 for page in pages)
    assert (sorted(found) if name == "out of order" else found) == expected()
    service.add(events(COUNT, COUNT + 50))
    service.add([an_event("late", "2024-05-06T07:02:15.5Z")])
    assert sorted(ids(log.pages(state=stored(pages[-1].state)))) == sorted(
        [*expected(COUNT + 50)[COUNT:], "late"]
    )


def test_a_last_page_without_events_completes_what_came_out_of_order(
    service: Service, settings: dict[str, Any]
) -> None:
    """The last state has all that was read, so the next call requests only what follows."""
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


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_a_crash_after_any_page_neither_loses_nor_repeats(
    name: str, seed: int, service: Service, settings: dict[str, Any]
) -> None:
    """A state covers its page and all before it, and no page that was read ahead."""
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


def test_a_state_that_is_read_later_is_that_of_its_page(service: Service, log: AuditEvents) -> None:
    """However many pages were read in between."""
    service.add(events(0, COUNT))
    pages = list(log.pages())
    for number in (0, 3, len(pages) - 2):
        rest = ids(log.pages(state=pages[number].state))
        assert ids(pages[: number + 1]) + rest == expected()


def test_a_run_without_new_events_brings_no_page(service: Service, log: AuditEvents) -> None:
    """And is one request: the stored state stays as it is."""
    service.add(events(0, 10))
    *_, last = log.pages()
    requests = len(service.requests)
    assert list(log.pages(state=last.state)) == []
    assert len(service.requests) == requests + 1


@pytest.mark.parametrize("state", [None, {}])
def test_an_empty_service_has_no_pages(log: AuditEvents, state: dict[str, Any] | None) -> None:
    assert list(log.pages(state=state)) == []


def test_hostile_events_keep_every_digit_and_field(service: Service, log: AuditEvents) -> None:
    """`raw` is the service's own bytes; `events` and `raw` say the same."""
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
        ("2024-05-06T07:00:30Z", "2024-05-06T07:00:39Z"),
        ("2024-05-06T09:00:30+02:00", SECOND.astimezone(timezone(timedelta(hours=-3)))
         + timedelta(seconds=9)),
        (SECOND - timedelta(microseconds=1), "2024-05-06T07:00:39.999999999Z"),
    ],
)  # fmt: skip
def test_a_range_has_both_its_bounds(
    start: datetime | str, end: datetime | str, service: Service, log: AuditEvents
) -> None:
    """As datetime or text, with any offset."""
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
        ({"end": 5}, "end must be a string: an RFC 3339 date-time"),
        ({"start": "2024-02-30T00:00:00Z"}, "start is not a date-time that exists"),
        ({"start": SECOND, "end": "2024-05-06T07:00:29Z"}, BEFORE_START),
    ],
)
def test_a_bound_that_cannot_be_used_is_refused_by_the_call(
    bounds: dict[str, Any], message: str, service: Service, log: AuditEvents
) -> None:
    """Before the first page is requested."""
    with pytest.raises(SettingsError, match=f"^AE-SETTINGS: {message}"):
        log.pages(**bounds)
    assert service.requests == []


def test_an_end_before_the_start_of_the_settings_is_refused(settings: dict[str, Any]) -> None:
    """The message names both, as the call has only one of them."""
    log = AuditEvents(**settings, start_date=SECOND)

    with pytest.raises(SettingsError, match=BEFORE_START):
        log.pages(end="2024-05-06T07:00:29Z")


@pytest.mark.parametrize(
    "state",
    [
        {"organization_id": "6f1d4c1e-7f0b-4f3a-9d35-000000000000", "action_types": []},
        {"bookmark": 1},
        {"bookmarks": {"audit_events": {"replication_key_value": "2024-05-06T07:00:29Z"}}},
        "{}",
        b"x",
        [1],
        5,
        True,
    ],
)
def test_a_state_that_is_none_of_ours_is_refused_by_the_call(
    state: Any, service: Service, log: AuditEvents
) -> None:
    """Or belongs to another organization."""
    with pytest.raises(SettingsError, match=r"^AE-STATE: "):
        log.pages(state=state)
    assert service.requests == []


def test_a_singer_state_is_told_from_that_of_a_page(log: AuditEvents) -> None:
    """The tap writes the one, `EventPage.state` is the other."""
    state: dict[str, Any] = {"bookmarks": {"audit_events": {}}}
    with pytest.raises(SettingsError, match=r"it is a Singer state: .*page\.state"):
        log.pages(state=state)


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        ("status:code=403@3", RefusedError, "AE-403"),
        ("status:code=503@3-", RetryableError, "AE-500"),
        ("body:text=%5B%5D@3", ContractError, "AE-ENVELOPE"),
    ],
)
def test_an_error_comes_after_the_events_before_it(
    fault: str, kind: type[ServiceError], code: str, service: Service, settings: dict[str, Any]
) -> None:
    """With its code, as an exception to catch; the states before it remain good."""
    service.add(events(0, 100))
    service.add_faults([fault])
    log = AuditEvents(**settings, page_size=20, concurrency=1, max_retries=0)
    pages: list[EventPage] = []
    with pytest.raises(kind) as raised:
        pages.extend(log.pages())
    assert len(pages) == 2
    assert isinstance(raised.value, AuditEventsError)
    assert raised.value.code == code
    assert str(raised.value).startswith(f"{code}: ")
    assert settings["access_token"] not in str(raised.value)


def test_an_error_says_how_long_the_service_wants_to_be_left_alone(
    service: Service, settings: dict[str, Any]
) -> None:
    """Also if no retries are left, so that a scheduler can wait."""
    service.add_faults(["status:code=429,retry-after=600@1-"])
    with pytest.raises(RetryableError) as raised:
        list(AuditEvents(**settings, max_retries=0).pages())
    assert raised.value.retry_after_seconds == 600


def test_a_page_without_events_is_true() -> None:
    """It has a newer state: a loop that ends at a false page would end too early."""
    page = EventPage([], [], organization_id=an_id(0), shape=RecordShape(), state=dict)
    assert page
    assert len(page) == 0


def test_an_error_comes_again_if_the_iterator_is_used_again(
    service: Service, settings: dict[str, Any]
) -> None:
    """A loop that tries again with the same iterator must not take the range for complete."""
    service.add(events(0, 100))
    service.add_faults(["status:code=503@3"])
    pages = AuditEvents(**settings, page_size=20, concurrency=1, max_retries=0).pages()
    for _ in range(3):
        with pytest.raises(RetryableError):
            list(pages)
    pages.close()
    assert list(pages) == []


def test_an_error_leaves_the_states_before_it_good(
    service: Service, settings: dict[str, Any]
) -> None:
    """The next run continues after the last page that came."""
    log = AuditEvents(**settings, page_size=20, concurrency=1)
    service.add(events(0, 100))
    service.add_faults([Fault(kind="status", when="4", code=403)])
    pages: list[EventPage] = []
    with pytest.raises(RefusedError):
        pages.extend(log.pages())
    assert ids(pages) == expected(60)
    assert ids(pages) + ids(log.pages(state=pages[-1].state)) == expected(100)


def test_an_error_of_one_of_several_organizations_comes_last() -> None:
    """With the error of each organization that failed, by its id; the others are read."""
    services = [a_service(number, 20) for number in range(3)]
    services[1].add_faults([Fault(kind="status", when="1-", code=403)])
    pages: list[EventPage] = []
    with SharedServer(services).served() as shared:
        items = [MappingProxyType({"organization_id": each.organization_id}) for each in services]
        log = AuditEvents(base_url=shared.base_url, access_token=SHARED, organizations=items)
        with pytest.raises(OrganizationsError) as raised:
            pages.extend(log.pages())
    assert {page.organization_id for page in pages} == {an_id(0), an_id(2)}
    assert {name: each.code for name, each in raised.value.errors.items()} == {an_id(1): "AE-403"}
    assert not raised.value.not_started


def test_the_error_of_an_organization_keeps_no_response_in_memory() -> None:
    """Its traceback would: of thousands that fail, each with a large response."""
    services = [a_service(number, 20) for number in range(2)]
    services[1].add_faults([Fault(kind="body", text=b'{"auditEvents": 7}', when="*")])
    with SharedServer(services).served() as shared:
        log = AuditEvents(**shared.settings)
        with pytest.raises(OrganizationsError) as raised:
            list(log.pages())
    (error,) = raised.value.errors.values()
    assert error.code == "AE-ENVELOPE"
    assert (error.__traceback__, error.__context__) == (None, None)


def test_an_organization_that_has_nothing_to_read_keeps_its_state() -> None:
    """Also with other settings, while another organization has events."""
    quiet, active = a_service(0, 20), a_service(1, 0)
    active.add([an_event(at="2024-01-01T00:00:00Z")])
    with SharedServer([quiet, active]).served() as shared:
        alone = shared.settings | {"organizations": shared.settings["organizations"][:1]}
        *_, before = AuditEvents(**alone).pages()
        both = AuditEvents(**shared.settings, end_date="2024-02-01T00:00:00Z", lookback_seconds=0)
        *_, after = both.pages(state=stored(before.state))
    (kept,) = before.state["organizations"]
    assert kept in after.state["organizations"]
    assert [page.organization_id for page in (before, after)] == [an_id(0), an_id(1)]


@pytest.mark.parametrize("name", tap_audit_events.__all__)
def test_each_public_name_can_be_imported(name: str) -> None:
    """Each is imported when it is first used."""
    assert getattr(tap_audit_events, name).__name__ == name


def test_help_describes_the_public_names() -> None:
    """So does the completion of a notebook."""
    text = pydoc.render_doc(tap_audit_events)
    assert "Read the events of a range, a page at a time." in text
    assert dir(tap_audit_events) == sorted(tap_audit_events.__all__)


def test_any_other_name_is_an_error() -> None:
    """For a type checker too: it finds the ignored error, and would call it unused otherwise."""
    with pytest.raises(AttributeError, match="no attribute 'AuditEvent'"):
        tap_audit_events.AuditEvent  # type: ignore[attr-defined]  # noqa: B018


def test_an_organization_that_fails_before_its_first_page_keeps_its_state() -> None:
    """Also with other settings, while another organization has events."""
    failing, active = a_service(0, 20), a_service(1, 0)
    with SharedServer([failing, active]).served() as shared:
        *_, before = AuditEvents(**shared.settings).pages()
        active.add([an_event()])
        failing.add_faults([Fault(kind="status", when="2", code=403)])
        others: dict[str, Any] = {"lookback_seconds": 0, "action_types": ["workspace_create"]}
        log = AuditEvents(**shared.settings, concurrency=1, **others)
        after: list[EventPage] = []
        with pytest.raises(OrganizationsError):
            after.extend(log.pages(state=stored(before.state)))
    (kept,) = before.state["organizations"]
    assert kept in after[-1].state["organizations"]
