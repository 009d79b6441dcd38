"""Coverage records form a chain without gaps, which stays true after runs that fail."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tap_audit_events.extraction.coverage import digest_number
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.conftest import Sync
from tests.running import Run
from tests.shared_server import SharedServer, a_service

STREAM = "audit_events_coverage"
DAY = "2024-05-06"
START = "0001-01-01T00:00:00Z"


def events(first: int, end: int) -> list[dict[str, Any]]:
    return [an_event(id=f"{n:03}", at=f"{DAY}T08:{n:02}:00Z") for n in range(first, end)]


def a_catalog(sync: Sync) -> dict[str, Any]:
    """A catalog that selects both streams."""
    catalog: dict[str, Any] = json.loads(sync("--discover").raise_for_exit_code().stdout)
    for stream in catalog["streams"]:
        (root,) = [each for each in stream["metadata"] if not each["breadcrumb"]]
        root["metadata"]["selected"] = True
    return catalog


def of_stream(done: Run, stream: str) -> list[dict[str, Any]]:
    records = [each for each in done.messages if each["type"] == "RECORD"]
    return [each["record"] for each in records if each["stream"] == stream]


def test_coverage_is_off_by_default(service: Service, sync: Sync) -> None:
    """Only a user who selects the stream gets a second table."""
    service.add(events(0, 3))
    done = sync().raise_for_exit_code()
    assert {each.get("stream") for each in done.messages} <= {"audit_events", None}


def test_a_stream_map_may_be_for_coverage(service: Service, sync: Sync) -> None:
    """The error says that an expression failed at a coverage record, not at an event."""
    service.add(events(0, 3))
    catalog = a_catalog(sync)
    maps = {STREAM: {"__alias__": "proof"}}
    done = sync(catalog=catalog, stream_maps=maps).raise_for_exit_code()
    assert len(of_stream(done, "proof")) == 1
    failed = sync(catalog=catalog, stream_maps={STREAM: {"x": "1 / 0"}})
    (line,) = failed.errors
    assert line.startswith("AE-STREAM-MAPS: stream_maps fails at a coverage record (")
    assert len(of_stream(failed, "audit_events")) == 3


def test_a_day_is_covered_once_and_to_the_nanosecond(service: Service, sync: Sync) -> None:
    """The end of a day has more digits, which many databases refuse."""
    service.add(events(0, 3))
    catalog = a_catalog(sync)
    first = sync(catalog=catalog, end_date=DAY).raise_for_exit_code()
    again = sync(catalog=catalog, end_date=DAY, state=first.state).raise_for_exit_code()
    (record,) = of_stream(first, STREAM)
    assert record["covered_until"] == f"{DAY}T23:59:59.999999999Z"
    assert of_stream(again, STREAM) == []


def test_records_form_a_chain(service: Service, sync: Sync) -> None:
    """Each record begins where the previous one ends, even after a run that finds nothing."""
    service.add(events(0, 10))
    catalog = a_catalog(sync)

    def run_until(hour: int, state: object) -> tuple[dict[str, Any], dict[str, Any]]:
        done = sync(
            catalog=catalog, state=state, page_size=4, end_date=f"{DAY}T{hour:02}:00:00Z"
        ).raise_for_exit_code()
        (record,) = of_stream(done, STREAM)
        return record, done.state

    one, state = run_until(9, None)
    assert (one["covered_from"], one["covered_until"]) == (START, f"{DAY}T09:00:00Z")
    assert (one["events"], one["late_events"]) == (10, 0)
    assert (one["first_event_at"], one["last_event_at"]) == (f"{DAY}T08:00:00Z", f"{DAY}T08:09:00Z")
    assert one["previous_digest"] is None
    late = an_event(id="late", at=f"{DAY}T08:08:30Z")
    service.add([late, an_event(id="new", at=f"{DAY}T09:30:00Z")])
    two, state = run_until(10, state)
    assert (two["covered_from"], two["covered_until"]) == (f"{DAY}T09:00:00Z", f"{DAY}T10:00:00Z")
    assert (two["events"], two["late_events"]) == (2, 1)
    assert two["previous_digest"] == one["digest"]
    three, _ = run_until(11, state)
    assert three["covered_from"] == f"{DAY}T10:00:00Z"
    assert (three["events"], three["digest"], three["first_event_at"]) == (0, "0" * 64, None)
    assert three["previous_digest"] == two["digest"]


def test_read_at_is_before_the_first_request(
    service: Service, settings: dict[str, Any], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """An event that the service shows after its page was read is not claimed to be covered."""
    service.add(events(0, 10))
    service.add([an_event(id="late", at=f"{DAY}T08:00:30Z")], visible_from_request=3)
    begin = datetime(2024, 5, 6, 9, tzinfo=UTC)

    def now() -> datetime:
        return begin + timedelta(minutes=len(service.requests))

    config = settings | {"page_size": 2, "concurrency": 1}
    catalog = TapAuditEvents(config=config).catalog_dict
    for stream in catalog["streams"]:
        stream["metadata"][-1]["metadata"]["selected"] = True
    TapAuditEvents(config=config, catalog=catalog, runtime=Runtime(now=now)).sync_all()
    records = [
        message["record"]
        for message in map(json.loads, capfdbinary.readouterr().out.splitlines())
        if message["type"] == "RECORD"
    ]
    assert "late" not in [each.get("id") for each in records]
    assert [each["read_at"] for each in records if "read_at" in each] == [f"{DAY}T09:00:00Z"]


def test_a_run_that_fails_leaves_no_record(service: Service, sync: Sync) -> None:
    """The record of the next run covers the events of both runs, each once."""
    service.add(events(0, 30))
    service.add_faults([Fault(kind="status", code=403, when="3")])
    catalog = a_catalog(sync)
    failed = sync(catalog=catalog, page_size=5, concurrency=1)
    assert failed.exit_code == 1
    assert of_stream(failed, STREAM) == []
    assert len(of_stream(failed, "audit_events")) == 10
    done = sync(catalog=catalog, state=failed.state).raise_for_exit_code()
    (record,) = of_stream(done, STREAM)
    assert record["covered_from"] == START
    assert record["events"] == 30
    delivered = [*of_stream(failed, "audit_events"), *of_stream(done, "audit_events")]
    numbers = [digest_number(each["id"], as_sent(each)) for each in delivered]
    assert record["digest"] == f"{sum(numbers) % 2**256:064x}"


def as_sent(event: dict[str, Any]) -> bytes:
    """The bytes in which the sandbox sends an event."""
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("moved_to", "covered_from"),
    [
        pytest.param("11:00:00", "11:00:00", id="beyond what was read"),
        pytest.param("09:02:00", "09:00:00", id="so that the lookback reaches what was read"),
        pytest.param("07:00:00", "09:00:00", id="back"),
    ],
)
def test_time_that_a_bookmark_moved_by_hand_skips_is_not_covered(
    moved_to: str, covered_from: str, service: Service, sync: Sync
) -> None:
    """No run has read the events in that time."""
    service.add(events(0, 5))
    catalog = a_catalog(sync)
    state = sync(catalog=catalog, end_date=f"{DAY}T09:00:00Z").raise_for_exit_code().state
    state["bookmarks"]["audit_events"]["replication_key_value"] = f"{DAY}T{moved_to}Z"
    service.add([an_event(id="between", at=f"{DAY}T10:00:00Z")])
    done = sync(catalog=catalog, state=state, end_date=f"{DAY}T12:00:00Z").raise_for_exit_code()
    (record,) = of_stream(done, STREAM)
    assert record["covered_from"] == f"{DAY}T{covered_from}Z"


def test_the_schema_of_coverage_is_written_before_its_first_record(
    service: Service, sync: Sync
) -> None:
    """The record follows every event that it covers."""
    service.add(events(0, 5))
    done = sync(catalog=a_catalog(sync), page_size=2).raise_for_exit_code()
    kinds = [(each["type"], each.get("stream")) for each in done.messages]
    record = kinds.index(("RECORD", STREAM))
    assert kinds.index(("SCHEMA", STREAM)) < record
    assert ("RECORD", "audit_events") not in kinds[record:]
    assert kinds[-1][0] == "STATE"


def test_organizations_share_the_files_that_their_coverage_follows(tmp_path: Path) -> None:
    """An organization that ends does not complete a file, and the record waits for the file."""
    encoding = {"format": "jsonl", "compression": "none"}
    config = {"encoding": encoding, "storage": {"root": str(tmp_path / "batches")}}
    with SharedServer([a_service(n, 3) for n in range(20)]).served() as shared:
        catalog = a_catalog(shared.run)
        settings = {"catalog": catalog, "batch_config": config}
        done = shared.run(end_date=f"{DAY}T09:00:00Z", **settings).raise_for_exit_code()
        again = shared.run(end_date=f"{DAY}T10:00:00Z", state=done.state, **settings)
    urls = [url for each in done.messages if each["type"] == "BATCH" for url in each["manifest"]]
    assert len(urls) <= 2
    assert sum(len(Path(urlsplit(url).path).read_text().splitlines()) for url in urls) == 60
    kinds = [each["type"] for each in done.messages]
    assert "BATCH" not in kinds[kinds.index("RECORD") :]
    records = of_stream(done, STREAM)
    assert [record["events"] for record in records] == [3] * 20
    followers = of_stream(again.raise_for_exit_code(), STREAM)
    assert {(each["organization_id"], each["covered_from"]) for each in followers} == {
        (each["organization_id"], each["covered_until"]) for each in records
    }


def test_other_action_types_begin_a_chain_of_their_own(service: Service, sync: Sync) -> None:
    """A record never covers types that were not requested."""
    service.add(events(0, 5))
    catalog = a_catalog(sync)
    first = sync(catalog=catalog, end_date=f"{DAY}T09:00:00Z").raise_for_exit_code()
    service.add([an_event(id="other", at=f"{DAY}T09:30:00Z", action_type="user_invite")])
    settings = {"action_types": ["workspace_create"], "end_date": f"{DAY}T10:00:00Z"}
    narrow = sync(catalog=catalog, state=first.state, **settings).raise_for_exit_code()
    (record,) = of_stream(narrow, STREAM)
    assert record["action_types"] == ["workspace_create"]
