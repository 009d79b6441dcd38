"""The log of a run: a few lines, metrics at its end, and its progress."""

import json
import logging
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.reporting import progress
from tap_audit_events.reporting.new_fields import MAX_NAMES
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.config.test_surroundings import run_in_shell
from tests.conftest import Sync
from tests.running import Run
from tests.singer.test_complete import summary
from tests.singer.test_incremental import events, state_of

TEN_EVENTS = events(*(f"08:00:0{n}" for n in range(10)))
DAY = {"start_date": "2024-05-06T08:00:00Z", "end_date": "2024-05-06T08:00:20Z"}
TRY_AGAIN = Fault(kind="status", code=429, retry_after="1", when="3")


def metrics(done: Run) -> dict[str, dict[str, Any]]:
    """The METRIC lines of a run by name; each name occurs once."""
    points = [json.loads(text) for text in re.findall(r"METRIC: (.*)", done.log)]
    assert len({point["metric"] for point in points}) == len(points)
    return {point["metric"]: point for point in points}


def logged(done: Run, beginning: str) -> list[str]:
    """The lines of a log that begin with a text."""
    lines = [line.split(" | ", 3)[-1] for line in done.log.splitlines()]
    return [line for line in lines if line.startswith(beginning)]


# The lines of a run


def test_the_first_line_of_a_run_says_what_it_reads(service: Service, sync: Sync) -> None:
    """The line has the range, the bookmark and the lookback."""
    service.add(TEN_EVENTS)
    state = state_of("2024-05-06T08:00:09Z")
    done = sync(state=state, end_date="2024-05-06T09:00:00Z", lookback_seconds=9)
    (line,) = logged(done, "Reading ")
    assert line == (
        "Reading events from 2024-05-06T08:00:00Z to 2024-05-06T09:00:00Z;"
        " bookmark 2024-05-06T08:00:09Z; lookback 9 s; at most 4 requests at a time"
    )


def test_the_last_line_of_a_run_sums_it_up(service: Service, sync: Sync) -> None:
    """It counts events, late and repeated ones, requests, retries and waits, and has the lag."""
    now = datetime.now(UTC).replace(microsecond=0)
    times = [f"{now - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}" for minutes in (12, 11, 10)]
    service.add(an_event(id=at, at=at) for at in (times[0], times[2]))
    state = sync().state
    service.add([an_event(id=times[1], at=times[1])])
    service.add_faults([Fault(kind="status", code=503, retry_after="1", when="2")])
    line = summary(sync(state=state).raise_for_exit_code().log)
    expected = (
        r"Done: 1 event delivered; 1 of them late, the latest by 60 s; 2 dropped as delivered"
        r" before; requests: 2, windows: 1, retries: 1; (\d\.\d) s waited for retries;"
        rf" bookmark {times[2]}, 0:10:\d\d behind now"
    )
    found = re.fullmatch(expected, line)
    assert found, line
    assert float(found[1]) >= 1


def test_a_run_that_fails_says_how_many_events_were_delivered(service: Service, sync: Sync) -> None:
    """The line is written before that of the error, and instead of the summary."""
    service.add(TEN_EVENTS)
    service.add_faults([Fault(kind="status", code=403, when="3")])
    done = sync(page_size=3, concurrency=1)
    assert done.exit_code == 1
    (line,) = logged(done, "Ended early: ")
    assert len(done.records) == 6
    assert line.startswith("Ended early: 6 events delivered; requests: 3, retries: 0; bookmark 20")
    assert logged(done, "Done: ") == []


FILTER = {"__filter__": "id < '08:00:04'"}


@pytest.mark.parametrize(
    ("stream_maps", "records", "told_as"),
    [
        ({"audit_events": FILTER}, 4, "4 records written of 10 events (6 left out by stream_maps)"),
        ({"copy": {"__source__": "audit_events"}}, 20, "20 records written of 10 events"),
        (
            {"audit_events": FILTER, "copy": FILTER | {"__source__": "audit_events"}},
            8,
            "8 records written of 10 events (6 left out by stream_maps)",
        ),
        ({"audit_events": {"x": "id"}}, 10, "10 events delivered"),
    ],
)
def test_records_are_counted_if_they_are_written(
    stream_maps: dict[str, Any], records: int, told_as: str, service: Service, sync: Sync
) -> None:
    """Records that stream maps leave out are not counted, though the bookmark moves past them."""
    service.add(TEN_EVENTS)
    done = sync(stream_maps=stream_maps, page_size=3).raise_for_exit_code()
    assert len(done.records) == records
    assert metrics(done)["record_count"]["value"] == records
    assert summary(done.log).startswith(f"Done: {told_as}; 0 of them late; ")
    assert done.bookmark == TEN_EVENTS[-1]["occurredAt"]


@pytest.mark.parametrize(
    ("faults", "position"),
    [
        ([], r"; reached 2024-05-06T08:00:04Z, 20% of the range, \d:\d\d:\d\d to go"),
        ([Fault(kind="displaced", event=2)], ""),
    ],
)
def test_a_long_run_logs_its_progress(
    faults: list[Fault],
    position: str,
    *,
    service: Service,
    settings: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """It does so every few seconds, here after each page. Out of order, it has no position."""
    monkeypatch.setattr(progress, "PROGRESS_SECONDS", 0.0)
    service.add(TEN_EVENTS)
    service.add_faults(faults)
    with caplog.at_level(logging.INFO):
        TapAuditEvents(config=settings | DAY | {"page_size": 5, "concurrency": 1}).sync_all()
    assert capfdbinary.readouterr().out.count(b'"RECORD"') == 10
    lines = [line for line in caplog.messages if "a second" in line]
    assert re.fullmatch(
        rf"5 events, \d+ a second{position}; requests: [12], retries: 0",
        next(line for line in lines if line.startswith("5 events")),
    )


# Fields and actor types that the interface does not name

STRANGE = an_event(
    id="strange",
    at="2024-05-06T08:00:30Z",
    action_type="brand_new",
    actor={"type": "robot", "id": "r", "owner": "x"},
    added={"deep": 1},
)


@pytest.mark.parametrize("lane", [{}, {"flattening_enabled": True, "flattening_max_depth": 1}])
def test_new_names_are_logged_once(lane: dict[str, Any], service: Service, sync: Sync) -> None:
    """The names are actor types and fields outside of `details`, in either lane."""
    service.add([*TEN_EVENTS, STRANGE, STRANGE | {"id": "again"}])
    done = sync(**lane).raise_for_exit_code()
    assert logged(done, "Actor types that") == [
        "Actor types that this version does not know, delivered like any other: 'robot'"
    ]
    (fields,) = logged(done, "Fields that are not in the schema")
    assert fields.endswith("a target may leave them out: 'actor.owner', 'added'")
    assert done.warnings == []
    quiet = sync(state=done.state, **lane).raise_for_exit_code()
    assert "does not know" not in quiet.log


def test_action_types_that_were_not_requested_are_a_warning(service: Service, sync: Sync) -> None:
    """A gateway may drop the filter: the events are delivered, but somebody has to know."""
    body = json.dumps({"auditEvents": [an_event(id="1"), STRANGE | {"id": "2"}]}).encode()
    service.add_faults([Fault(kind="body", text=body)])
    done = sync(action_types=["workspace_create"]).raise_for_exit_code()
    assert done.ids == ["1", "2"]
    (warning,) = done.warnings
    assert warning.startswith("The service sends events of action types that action_types does not")
    assert warning.endswith("they are delivered too: 'brand_new'")


def test_many_new_names_are_logged_in_one_line(service: Service, sync: Sync) -> None:
    """A first run does not flood the log, and no name can forge a log line."""
    names = [f"new\nERROR | {n:03}{'x' * 500}" for n in range(MAX_NAMES + 5)]
    service.add(
        an_event(id=f"{n:03}", at=f"2024-05-06T08:00:{n:02}Z", actor={"type": name, "id": "a"})
        for n, name in enumerate(names)
    )
    done = sync().raise_for_exit_code()
    (line,) = logged(done, "Actor types that")
    assert line.count("'new\\nERROR | ") == MAX_NAMES
    assert line.endswith(", and more")
    assert len(line) < 100 * (MAX_NAMES + 1)


def test_an_event_nested_too_deeply_to_inspect_is_delivered(service: Service, sync: Sync) -> None:
    """The search for new names never stops a delivery."""
    deep: Any = 1
    for _ in range(700):
        deep = [deep]
    service.add([an_event(extra=deep)])
    assert len(sync().raise_for_exit_code().records) == 1


# Metrics


def test_a_run_ends_with_one_line_for_each_metric(service: Service, sync: Sync) -> None:
    """The lines have the SDK's form, on which alerts are built."""
    service.add(TEN_EVENTS)
    service.add_faults([TRY_AGAIN])
    done = sync(page_size=2, concurrency=1).raise_for_exit_code()
    found = metrics(done)
    assert list(found) == [
        "sync_duration",
        "record_count",
        "http_request_count",
        "http_retry_count",
        "http_request_duration",
        "lag_seconds",
    ]
    assert found["record_count"]["value"] == 10
    assert found["http_request_count"]["value"] == len(service.requests)
    assert found["http_retry_count"]["value"] == 1
    assert 0 < found["http_request_duration"]["value"] < 1 <= found["sync_duration"]["value"]
    newest = datetime(2024, 5, 6, 8, 0, 9, tzinfo=UTC)
    behind = (datetime.now(UTC) - newest).total_seconds()
    assert found["lag_seconds"]["value"] == pytest.approx(behind, abs=120)
    assert all(point["tags"]["stream"] == "audit_events" for point in found.values())


def test_lines_are_structured_if_meltano_configures_it(
    service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Each line is JSON, metrics have their own field, and errors keep their code."""
    (tmp_path / "logging.yaml").write_text(
        "version: 1\n"
        "disable_existing_loggers: false\n"
        "formatters: {structured: {(): singer_sdk.logging.StructuredFormatter}}\n"
        "handlers: {default: {class: logging.StreamHandler, formatter: structured,"
        " stream: ext://sys.stderr}}\n"
        "root: {level: INFO, handlers: [default]}\n"
    )
    service.add(TEN_EVENTS)
    service.add_faults([Fault(kind="status", code=403, when="2")])
    few = settings | {"page_size": 5, "concurrency": 1}
    done = run_in_shell(few, tmp_path, "TAP", SINGER_SDK_LOG_CONFIG="logging.yaml")
    assert done.exit_code == 1
    lines = [json.loads(line) for line in done.log.splitlines()]
    (error,) = [line["message"] for line in lines if line["level"] == "error"]
    assert error.startswith("AE-403: ")
    points = {line["metric_info"]["metric"]: line for line in lines if "metric_info" in line}
    assert points["record_count"]["metric_info"]["value"] == 5
    assert points["lag_seconds"]["metric_info"]["type"] == "gauge"
