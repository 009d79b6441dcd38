"""Runs with `batch_config`, through the command line."""

import gzip
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tap_audit_events.sandbox import Service
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.conftest import Sync
from tests.running import Run
from tests.singer.test_lanes import WriterIntoMemory


def a_batch_config(root: Path | str, **more: Any) -> dict[str, Any]:
    """A `batch_config`; keywords replace parts of it."""
    return {
        "encoding": {"format": "jsonl", "compression": "gzip"},
        "storage": {"root": f"file://{root}", "prefix": "audit-"},
    } | more


def events(count: int) -> list[dict[str, Any]]:
    """Up to 60 events, a second apart."""
    return [an_event(id=f"{n}", at=f"2024-05-06T07:00:{n:02}Z") for n in range(count)]


def files_of(message: dict[str, Any]) -> list[Path]:
    return [Path(urlsplit(url).path) for url in message["manifest"]]


def lines_of(path: Path) -> list[bytes]:
    content = path.read_bytes()
    lines = (gzip.decompress(content) if path.suffix == ".gz" else content).split(b"\n")
    assert lines.pop() == b"", "the last line has no end"
    return lines


def batches(run: Run) -> list[list[dict[str, Any]]]:
    """The records of each BATCH message."""
    return [
        [json.loads(line) for path in files_of(message) for line in lines_of(path)]
        for message in run.messages
        if message["type"] == "BATCH"
    ]


def ids(run: Run) -> list[str]:
    return [record["id"] for batch in batches(run) for record in batch]


def types(run: Run) -> list[str]:
    return [message["type"] for message in run.messages]


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_the_files_hold_the_events_own_bytes(
    service: Service, sync: Sync, tmp_path: Path, compression: str
) -> None:
    """There are no RECORD messages."""
    texts = [
        json.dumps(an_event(id=f"{n}", at=f"2024-05-06T07:00:0{n}Z", extra=1))
        .encode()
        .replace(b'"extra": 1', b'"extra" : 1.100000000000000000001')
        for n in range(5)
    ]
    service.add_raw(texts)
    encoding = {"format": "jsonl", "compression": compression}
    run = sync(page_size=2, batch_config=a_batch_config(tmp_path, encoding=encoding))
    (message,) = (m for m in run.raise_for_exit_code().messages if m["type"] == "BATCH")
    assert [line for path in files_of(message) for line in lines_of(path)] == texts
    assert message["encoding"] == encoding
    assert message["stream"] == "audit_events"
    assert run.records == []
    assert [path.name.startswith("audit-") for path in files_of(message)] == [True]


def test_a_state_covers_complete_files_only(service: Service, sync: Sync, tmp_path: Path) -> None:
    """The STATE after each BATCH message has the time of the last event in its file."""
    service.add(events(10))
    run = sync(page_size=2, concurrency=1, batch_config=a_batch_config(tmp_path, batch_size=4))
    assert types(run.raise_for_exit_code()) == ["SCHEMA", *3 * ["BATCH", "STATE"]]
    assert [len(batch) for batch in batches(run)] == [4, 4, 2]
    bookmarks = [
        state["bookmarks"]["audit_events"]["replication_key_value"] for state in run.states
    ]
    assert bookmarks == [batch[-1]["occurredAt"] for batch in batches(run)]


@pytest.mark.parametrize(("page_size", "batch_size"), [(3, 4), (10, 3), (1, 1)])
def test_no_file_has_more_events_than_allowed(
    service: Service, sync: Sync, tmp_path: Path, page_size: int, batch_size: int
) -> None:
    """A page may be larger than a file, or smaller; each event is in one file."""
    service.add(events(11))
    config = a_batch_config(tmp_path, batch_size=batch_size)
    run = sync(page_size=page_size, batch_config=config).raise_for_exit_code()
    assert ids(run) == [f"{n}" for n in range(11)]
    assert max(map(len, batches(run))) <= batch_size
    assert types(run)[-1] == "STATE"


@pytest.mark.parametrize("most", [(5, 64_000_000), (1000, 3000)])
def test_a_file_ends_with_a_page_if_the_next_may_not_fit(
    service: Service,
    settings: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most: tuple[int, int],
) -> None:
    """Otherwise, a page would always be in two files, and STATE would never be due."""
    batch_size, most_bytes = most
    monkeypatch.setattr("tap_audit_events.singer.batch_files.MAX_BYTES", most_bytes)
    service.add(events(8))
    config = a_batch_config(tmp_path, batch_size=batch_size)
    more = {"batch_config": config, "page_size": 2, "concurrency": 1}
    writer = WriterIntoMemory()
    TapAuditEvents(config=settings | more, message_writer=writer).sync_all()
    assert [each["type"] for each in writer.messages] == ["SCHEMA", *2 * ["BATCH", "STATE"]]


def test_later_runs_write_new_files(service: Service, sync: Sync, tmp_path: Path) -> None:
    """They are in the same folder; a run without new events writes no file."""
    config = a_batch_config(tmp_path)
    service.add(events(3))
    first = sync(batch_config=config).raise_for_exit_code()
    quiet = sync(batch_config=config, state=first.state).raise_for_exit_code()
    assert "BATCH" not in types(quiet)
    service.add([an_event(id="new", at="2024-05-06T07:00:02.5Z")])
    assert ids(sync(batch_config=config, state=quiet.state)) == ["new"]
    assert len(list(tmp_path.iterdir())) == 2
    assert ids(first) == ["0", "1", "2"]


def test_stream_maps_flattening_and_deselection_work_with_files(
    service: Service, sync: Sync, tmp_path: Path
) -> None:
    """A copy of the stream has files of its own."""
    service.add(events(4))
    maps = {
        "audit_events": {"context": "__NULL__", "__filter__": "id != '1'"},
        "people": {
            "__source__": "audit_events",
            "id": "id",
            "who": "actor['id']",
            "__else__": None,
        },
    }
    run = sync(
        page_size=2,
        batch_config=a_batch_config(tmp_path, batch_size=3),
        stream_maps=maps,
        flattening_enabled=True,
        flattening_max_depth=1,
    ).raise_for_exit_code()
    found: dict[str, list[dict[str, Any]]] = {}
    messages = [message for message in run.messages if message["type"] == "BATCH"]
    for message, batch in zip(messages, batches(run), strict=True):
        found.setdefault(message["stream"], []).extend(batch)
    assert [record["id"] for record in found["audit_events"]] == ["0", "2", "3"]
    assert all("context__requestId" not in each for each in found["audit_events"])
    assert all(record["actor__id"] == "user-1" for record in found["audit_events"])
    assert found["people"] == [{"id": f"{n}", "who": "user-1"} for n in range(4)]
