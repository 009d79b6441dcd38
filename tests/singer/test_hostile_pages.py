"""A service that breaks the interface: what it sends is delivered once, or the run fails."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service, serve
from tests.builders import an_event
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.extraction.watermarks import from_json
from tests.running import Run, run, settings_for
from tests.singer.test_incremental import events


def lag_of(done: Run) -> float | None:
    """The lag in the METRIC line that alerts look at, or None if there is no such line."""
    found = re.findall(r'"lag_seconds","value":([0-9.]+)', done.log)
    return float(found[0]) if found else None


def second(number: int) -> dict[str, Any]:
    """The event with this number; events are a second apart."""
    at = f"2024-05-06T{8 + number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    return an_event(id=f"{number:05}", at=at, context={})


# Times outside of the range


@pytest.fixture
def far_service() -> Service:
    """A service that takes 150 ms for each response, and ignores `startTime`."""
    return Service(page_latency_seconds=0.15, faults=[Fault(kind="ignore-start")])


@pytest.fixture
def far_settings(far_service: Service) -> Iterator[dict[str, Any]]:
    with serve(far_service) as server:
        yield settings_for(far_service, server.base_url)
    assert far_service.violations == []


@pytest.mark.parametrize(
    ("start", "expected"),
    [("2024-05-06T08:16:40Z", 1500), ("2024-05-06T08:41:40Z", 0), ("2025-01-01T00:00:00Z", 0)],
)
def test_events_older_than_the_start_date_are_left_out(
    start: str, expected: int, far_service: Service, far_settings: dict[str, Any]
) -> None:
    """This holds with default settings and over several pages; there is one warning."""
    far_service.add(map(second, range(2500)))
    done = run(far_settings | {"start_date": start}).raise_for_exit_code()
    assert done.ids == [f"{number:05}" for number in range(2500 - expected, 2500)]
    (warning,) = done.warnings
    assert warning.startswith("The service sends events from outside of the requested range")


# Names that occur twice

ONE, TWO = (json.dumps(event) for event in events("08:00:00", "08:00:01"))

REPEATED = {
    "events": f'{{"auditEvents": [{ONE}], "auditEvents": [{TWO}]}}',
    "a name with an escape": f'{{"audit\\u0045vents": [{ONE}], "auditEvents": [{TWO}]}}',
    "a cursor, then null": f'{{"auditEvents": [{ONE}], "nextCursor": "c", "nextCursor": null}}',
}


@pytest.mark.parametrize("kind", REPEATED)
def test_a_name_that_occurs_twice_is_an_error(kind: str, service: Service, sync: Sync) -> None:
    """Only one of the two would be read: events or further pages would be lost."""
    service.add_faults([Fault(kind="body", text=REPEATED[kind].encode())])
    done = sync()
    line = only_error(done)
    assert line.startswith("AE-ENVELOPE: ")
    assert re.search("it contains (auditEvents|nextCursor) more than once", line)
    assert done.ids == []


# Pages out of order, and a run that fails


def test_a_failed_first_run_out_of_order_repeats_nothing(service: Service, sync: Sync) -> None:
    """The next run reads everything again, and delivers only the rest."""
    service.add(map(second, range(6000)))
    service.add_faults(
        [
            Fault(kind="displaced", event=3, places=5),
            Fault(kind="status", code=403, when="5"),
        ]
    )
    failed = sync(concurrency=1)
    assert only_error(failed).startswith("AE-403: ")
    assert len(failed.ids) == 4000
    assert lag_of(failed) is None
    complete = sync(state=failed.state, concurrency=1).raise_for_exit_code()
    assert sorted(failed.ids + complete.ids) == [f"{number:05}" for number in range(6000)]
    assert "bookmark none; lookback" in complete.log
    for done in (complete, sync(state=complete.state).raise_for_exit_code()):
        assert done.bookmark == second(5999)["occurredAt"]
        assert 0 < (lag_of(done) or 0) < 1e9
    service.requests.clear()
    quiet = sync(state=done.state).raise_for_exit_code()
    assert quiet.ids == []
    (request,) = service.requests
    assert request.params["startTime"] == "2024-05-06T09:34:59Z"


# A token that looks like a part of STATE


def test_ids_in_state_are_not_masked(service: Service, settings: dict[str, Any]) -> None:
    """Ids may contain the token, and digests may contain it by chance."""
    service.add(an_event(id=f"acme_pat_{n}", at=f"2024-05-06T08:00:0{n}Z") for n in range(9))
    first = run(settings).raise_for_exit_code()
    (entry,) = first.state["bookmarks"]["audit_events"]["watermark"]
    digests = max((digests for _, digests in entry["ids"]), key=len)
    for token in ("acme_pat_", next(iter(re.findall(r"[A-Za-z0-9]{4}", digests)))):
        service.access_token = token
        given = json.dumps(settings | {"access_token": token})  # or `run` would find it in STATE
        again = run(given).raise_for_exit_code()
        assert len(again.ids) == 9
        groups = from_json(entry, lookback_seconds=300).groups
        (written,) = again.state["bookmarks"]["audit_events"]["watermark"]
        assert from_json(written, lookback_seconds=300).groups == groups
        assert run(given, state=again.state).raise_for_exit_code().ids == []
