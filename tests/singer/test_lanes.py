"""The verbatim lane writes what the SDK's own lane would write."""

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.events.exact_json import encode, read_record
from tap_audit_events.events.page import parse_page
from tap_audit_events.sandbox import Service
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.stream import AuditEventsStream
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.conftest import Sync
from tests.events.bodies import an_envelope
from tests.events.test_instants import texts as times
from tests.events.test_page import records
from tests.singer.test_faithful import ODD_EVENT

NOW = datetime(2026, 1, 31, 8, 0, 0, 123456, tzinfo=UTC)


class WriterIntoMemory(MessageWriter):
    """A writer that keeps its output in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.written = io.BytesIO()

    def _output(self) -> BinaryIO:
        return self.written

    @property
    def messages(self) -> list[Any]:
        lines = self.written.getvalue().split(b"\n")
        assert lines.pop() == b""
        return [json.loads(line, parse_float=Decimal) for line in lines]


layouts = st.sampled_from([None, 0, 2])
odd_texts = st.text(st.sampled_from(["a", "\0", "\ud800", "\udc00", "é", "\\", "\n", '"']))


@given(
    st.lists(
        st.builds(
            lambda event, time, name, layout: json.dumps(
                event | {"occurredAt": time[0], "entity": {"name": name}},
                indent=layout,
                default=float,
                ensure_ascii=True,
            ).encode(),
            records,
            times,
            odd_texts,
            layouts,
        ),
        max_size=6,
    )
)
def test_both_lanes_write_the_same_messages(texts: list[bytes]) -> None:
    """The events have unknown fields, odd texts, and any form of time and layout."""
    page = parse_page(an_envelope(*texts))
    assert page.malformed is None
    verbatim, sdk = WriterIntoMemory(), WriterIntoMemory()
    verbatim.write_records("audit_events", page.texts, NOW)
    for text in page.texts:
        sdk.write_records("audit_events", [encode(read_record(text))], NOW)
    assert verbatim.messages == sdk.messages
    assert len(verbatim.messages) == len(texts)


def lines_without_time(stdout: bytes) -> list[Any]:
    messages = [json.loads(line, parse_float=Decimal) for line in stdout.splitlines()]
    for message in messages:
        message.pop("time_extracted", None)
    return messages


def written_by(settings: dict[str, Any], *, verbatim: bool) -> list[Any]:
    """The messages of a run in this process, by one lane or the other."""
    writer = WriterIntoMemory()
    with pytest.MonkeyPatch.context() as patch:
        if not verbatim:
            patch.setattr(AuditEventsStream, "is_verbatim", property(lambda _: False))
        TapAuditEvents(config=dict(settings), message_writer=writer).sync_all()
    return lines_without_time(writer.written.getvalue())


def test_runs_by_both_lanes_write_the_same_messages(
    service: Service, settings: dict[str, Any]
) -> None:
    """All messages are equal, including SCHEMA and STATE, apart from `time_extracted`."""
    service.add_raw([ODD_EVENT])
    service.add([an_event(id=f"{n}", at=f"2024-05-06T0{n}:00:00.5+01:00") for n in range(5)])
    service.add([an_event(id="tie", at="2024-05-06T02:00:00.50Z")])
    end = {"page_size": 2, "concurrency": 1, "end_date": "2024-06-01T00:00:00Z"}
    verbatim = written_by(settings | end, verbatim=True)
    assert verbatim == written_by(settings | end, verbatim=False)
    assert len([m for m in verbatim if m["type"] == "RECORD"]) == 7


@pytest.mark.parametrize(
    ("stream_maps", "ids"),
    [(None, ["0", "1", "2", "3", "4"]), ({"audit_events": {"__filter__": "False"}}, [])],
)
def test_a_dry_run_of_the_sdk_ends_after_a_few_events(
    stream_maps: object, ids: list[str], service: Service, settings: dict[str, Any]
) -> None:
    """Programs test a tap in this way; STATE covers these events, including filtered ones."""
    service.add(an_event(id=f"{n}", at=f"2024-05-06T08:00:{n:02}Z") for n in range(30))
    writer = WriterIntoMemory()
    config = settings | {"stream_maps": stream_maps}
    tap = TapAuditEvents(config=config, message_writer=writer)
    assert tap.run_sync_dry_run(dry_run_record_limit=5)
    written = [each for each in writer.messages if each["type"] == "RECORD"]
    assert [each["record"]["id"] for each in written] == ids
    (*_, state) = [each["value"] for each in writer.messages if each["type"] == "STATE"]
    bookmark = state["bookmarks"]["audit_events"]["replication_key_value"]
    assert bookmark == "2024-05-06T08:00:04Z"


HUGE = b"1e999999999999999999999"


@pytest.mark.parametrize(
    "lane",
    [
        {"flattening_enabled": True, "flattening_max_depth": 1},
        {
            "stream_maps": {"audit_events": {"copy": "entity['number']"}},
            "flattening_enabled": True,
            "flattening_max_depth": 1,
        },
    ],
    ids=["flat", "both"],
)
def test_a_huge_exponent_keeps_its_digits(
    lane: dict[str, Any], service: Service, sync: Sync
) -> None:
    """No Python type can hold such a number; it is delivered wherever the SDK puts it."""
    event = json.dumps(an_event(entity={"number": "HUGE", "deep": {"number": ["HUGE"]}}))
    service.add_raw([event.encode().replace(b'"HUGE"', HUGE)])
    stdout = sync(**lane).raise_for_exit_code().stdout
    assert stdout.count(HUGE) >= 2
    assert b"Raw object" not in stdout
    assert b"HugeNumber" not in stdout


def test_an_error_of_the_sdk_is_not_blamed_on_stream_maps(
    service: Service, settings: dict[str, Any]
) -> None:
    """The user can fix only an expression of a stream map; STATE is written in both cases."""
    service.add([an_event()])
    flat = settings | {"flattening_enabled": True, "flattening_max_depth": 1}

    def fail(*_: object, **__: object) -> None:
        raise ValueError("a defect")

    for config, expected in (
        (flat, ValueError),
        (flat | {"stream_maps": {"audit_events": {"x": "id"}}}, SettingsError),
    ):
        writer = WriterIntoMemory()
        tap = TapAuditEvents(config=config, message_writer=writer)
        stream, _ = tap.streams.values()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(stream.stream_maps[0]), "transform", fail)
            with pytest.raises(expected, match="a defect"):
                tap.sync_all()
        assert writer.messages[-1]["type"] == "STATE"


def test_an_event_is_delivered_byte_for_byte(service: Service, sync: Sync) -> None:
    """The verbatim lane does not even change the order of keys or the layout."""
    text = b'{ "occurredAt":"2024-05-06T00:00:00Z" , "action":{"type":"x"},"n":[1.50, 1e2 ],'
    text += b'"id" : "\\u0061" }'
    service.add_raw([text])
    assert text in sync().raise_for_exit_code().stdout
