"""A service that breaks the interface in two ways at once, and pages that would never end."""

import json
from typing import Any

import pytest

from tap_audit_events.extraction.planning import pagination
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.singer.tap import TapAuditEvents
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.singer.test_complete import TEN_EVENTS, TEN_IDS
from tests.singer.test_incremental import events


def pages_out_of_order(service: Service) -> None:
    """Send pages of two events, the last page before the middle ones, then refuse a cursor."""
    first = {"auditEvents": TEN_EVENTS[:2], "nextCursor": "a"}
    second = {"auditEvents": TEN_EVENTS[8:], "nextCursor": "b"}
    third = {"auditEvents": TEN_EVENTS[2:4], "nextCursor": "c"}
    for number, page in enumerate((first, second, third), 1):
        service.add_faults([Fault(kind="body", text=json.dumps(page).encode(), when=str(number))])
    service.add_faults([Fault(kind="status", code=400, when="4")])


def test_a_refused_cursor_after_disorder_is_an_error(service: Service, sync: Sync) -> None:
    """A restart at the newest instant would skip the events that have not been sent yet."""
    service.add(TEN_EVENTS)
    pages_out_of_order(service)
    done = sync(page_size=2, concurrency=1)
    assert only_error(done).startswith("AE-CURSOR-REFUSED: ")
    assert "in the window up to " in only_error(done)
    again = sync(state=done.state).raise_for_exit_code()
    assert sorted(done.ids + again.ids) == TEN_IDS
    service.violations.clear()  # the sandbox did not send the cursors of these pages


def test_empty_pages_without_end_are_an_error(
    service: Service, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page has a new cursor, so only the number of empty pages shows the fault."""
    monkeypatch.setattr(pagination, "MAX_EMPTY_PAGES", 5)
    service.add(TEN_EVENTS)
    service.add_faults([Fault(kind="empty", when="3-")])
    with pytest.raises(Exception, match="AE-EMPTY-PAGES: "):
        TapAuditEvents(config=settings | {"page_size": 1, "concurrency": 1}).sync_all()
    assert len(service.requests) == 2 + 6


def test_bounds_that_were_rounded_raise_no_warning(service: Service, sync: Sync) -> None:
    """The tap itself requests the whole second, so it expects events outside of the bounds."""
    service.add(events("08:00:00.2", "08:00:00.7"))
    done = sync(start_date="2024-05-06T08:00:00.1Z", end_date="2024-05-06T08:00:00.5Z")
    assert done.raise_for_exit_code().ids == ["08:00:00.2"]
    assert done.warnings == []
