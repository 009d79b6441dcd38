"""Status 204, which the interface does not know, loses no events."""

import json
from collections.abc import Callable

import pytest

from tap_audit_events.errors.exceptions import RetryableError
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.builders import an_event
from tests.conftest import Sync
from tests.service.scripted import EMPTY_PAGE, Peer, client_of, scripted_service

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
FIRST, SECOND, END = (Instant(f"2026-01-{day}T00:00:00") for day in ("01", "02", "31"))
CUT, LATER, LAST = Window(FIRST, END, SECOND), Window(SECOND, END), Window(FIRST, END)


def a_page(*times: str, cursor: bool = False) -> bytes:
    events = [{"id": time, "occurredAt": f"{time}T00:00:00Z"} for time in times]
    page = {"auditEvents": events, **({"nextCursor": "c"} if cursor else {})}
    return json.dumps(page).encode()


def sends(*bodies: bytes | None) -> Callable[[Peer], None]:
    """Responds to one request after the other with a page, or with status 204."""

    def serve(peer: Peer) -> None:
        for body in bodies:
            peer.hear()
            peer.send(NO_CONTENT) if body is None else peer.respond(body)

    return serve


def fetched(window: Window, *bodies: bytes | None, cursor: str | None = None) -> tuple[Page, int]:
    """The page that a client gets from these responses, and how many requests it sent."""
    with scripted_service(sends(*bodies)) as service:
        page = client_of(service).client.fetch(window, cursor)
    return page, len(service.heard)


@pytest.mark.parametrize(
    "confirmation", [EMPTY_PAGE, a_page("2026-01-02"), a_page("2026-01-09", cursor=True)]
)
def test_a_page_confirms_that_a_window_before_it_is_empty(confirmation: bytes) -> None:
    """It begins at the window's start, so the window's events would be in it."""
    page, requests = fetched(CUT, None, confirmation)
    assert (list(page.ids), page.next_cursor, requests) == ([], None, 2)


@pytest.mark.parametrize("bodies", [[None, a_page("2026-01-01")], [None, a_page(cursor=True)]])
def test_events_in_spite_of_status_204_are_requested_again(bodies: list[bytes | None]) -> None:
    """The response to the same request is a page as any other; another request is retried."""
    with scripted_service(sends(*bodies)) as service, pytest.raises(RetryableError) as raised:
        client_of(service).client.fetch(CUT, None)
    assert (raised.value.code, raised.value.is_gateway) == ("AE-GATEWAY", True)
    page, _ = fetched(LAST, *bodies)
    assert len(page.ids) == len(json.loads(bodies[1] or b"")["auditEvents"])


def test_status_204_is_no_page_after_a_cursor() -> None:
    """The cursor says that more events remain (interface.md 2.7)."""
    with scripted_service(sends(None)) as service, pytest.raises(RetryableError) as raised:
        client_of(service).client.fetch(LAST, "c")
    assert raised.value.code == "AE-GATEWAY"


@pytest.mark.parametrize("events_first", [True, False])
def test_no_event_follows_a_range_that_only_status_204_calls_empty(events_first: bool) -> None:
    """Otherwise the bookmark would pass events that a gateway hides."""
    event = a_page("2026-01-09")
    bodies = [event, None, None] if events_first else [None, None, event]
    with scripted_service(sends(*bodies)) as service:
        client = client_of(service, max_retries=0 if events_first else 3).client
        windows = [LATER, CUT] if events_first else [CUT, LATER]
        client.fetch(windows[0], None)
        with pytest.raises(RetryableError, match=r"AE-GATEWAY: .*although there are events"):
            client.fetch(windows[1], None)
        assert len(service.heard) == 3


EVENTS = [
    an_event(id=f"{n:03}", at=f"2024-05-{n // 10 + 1:02}T00:00:{n % 10:02}Z") for n in range(200)
]
IDS = [event["id"] for event in EVENTS]


def is_empty(request: ReceivedRequest) -> bool:
    first, last = request.params.get("startTime", ""), request.params["endTime"]
    return not any(first <= event["occurredAt"] <= last for event in EVENTS)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_service_may_send_status_204_instead_of_empty_pages(
    concurrency: int, service: Service, sync: Sync
) -> None:
    """Each event is delivered, whether windows between events or after them are empty."""
    service.add(EVENTS)
    service.add_faults([Fault(kind="status", code=204, only=is_empty)])
    done = sync(page_size=10, concurrency=concurrency).raise_for_exit_code()
    assert done.ids == IDS
    again = sync(page_size=10, start_date="2025-01-01T00:00:00Z", state=done.state)
    assert again.raise_for_exit_code().ids == []


@pytest.mark.parametrize("when", ["1", "2", "*/3", "4-5", "7-8"])
def test_a_gateway_that_sends_status_204_hides_no_event(
    when: str, service: Service, sync: Sync
) -> None:
    """If the run ends well, or another one follows, each event was delivered once."""
    service.add(EVENTS)
    service.add_faults([Fault(kind="status", code=204, when=when)])
    done = sync(page_size=10, concurrency=8)
    assert done.ids == IDS[: len(done.ids)]
    service.add_faults([])
    assert done.ids + sync(page_size=10, concurrency=8, state=done.state or {}).ids == IDS
