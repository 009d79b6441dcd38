"""A coverage record does not depend on the order of events or on where a run ended."""

import json
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.instants import EARLIEST, Instant, parse_instant, text_of
from tap_audit_events.extraction.coverage import Coverage, continued_chain, digest_number
from tap_audit_events.extraction.watermark import Watermark

START = parse_instant("2024-05-06T08:00:00Z")
END = parse_instant("2024-05-06T10:00:00Z")
Event = tuple[str, Instant, bytes]


def an_event(number: int, minute: int) -> Event:
    instant = parse_instant(f"2024-05-06T{7 + minute // 60:02}:{minute % 60:02}:00Z")
    return f"e{number}", instant, b'{"id":"e%d","minute":%d}' % (number, minute)


EVENTS = st.lists(st.integers(0, 170), max_size=20).map(
    lambda minutes: [an_event(number, minute) for number, minute in enumerate(minutes)]
)


def add(coverage: Coverage, events: Sequence[Event]) -> None:
    ids, instants, texts = zip(*events, strict=True) if events else ((), (), ())
    coverage.add(ids, instants, texts)


def record_of(coverage: Coverage) -> dict[str, Any]:
    return coverage.record("organization", END, END)


def counted(*parts: Sequence[Event]) -> Coverage:
    coverage = Coverage(text_of(START), ["a"], [], previous_digest="ab" * 32)
    for part in parts:
        add(coverage, part)
    return coverage


@given(events=EVENTS, data=st.data())
def test_the_order_of_events_does_not_matter(events: list[Event], data: st.DataObject) -> None:
    """The same events give the same record, however they are spread over pages."""
    other = data.draw(st.permutations(events))
    cut = data.draw(st.integers(0, len(events)))
    assert record_of(counted(events)) == record_of(counted(other[:cut], other[cut:]))


@given(events=EVENTS, cuts=st.lists(st.integers(0, 20), max_size=4))
def test_a_run_may_end_anywhere(events: list[Event], cuts: list[int]) -> None:
    """The next run continues to count from the STATE of the last one."""
    coverage = counted()
    ends = [0, *sorted(cuts), len(events)]
    for first, end in pairwise(ends):
        coverage = Coverage.from_json(json.loads(json.dumps(coverage.to_json())))
        add(coverage, events[first:end])
    assert record_of(coverage) == record_of(counted(events))


@given(events=EVENTS)
def test_a_record_describes_the_events_that_were_added(events: list[Event]) -> None:
    """Events before the start of the record are late; the digest is a sum."""
    record = record_of(counted(events))
    instants = sorted(instant for _, instant, _ in events)
    assert record["events"] == len(events)
    assert record["late_events"] == sum(instant < START for instant in instants)
    assert [record["first_event_at"], record["last_event_at"]] == (
        [f"{instants[0]}Z", f"{instants[-1]}Z"] if instants else [None, None]
    )
    total = sum(digest_number(event_id, text) for event_id, _, text in events)
    assert record["digest"] == f"{total % 2**256:064x}"
    assert record["previous_digest"] == "ab" * 32
    assert (record["organization_id"], record["action_types"]) == ("organization", ["a"])


def test_the_number_of_an_event_stays_the_same() -> None:
    """Digests are compared with those of other runs, other versions and queries."""
    number = int(sha256(b'e1\0{"id":"e1"}').hexdigest(), 16)
    assert digest_number("e1", b'{"id":"e1"}') == number


@given(events=EVENTS.filter(bool), data=st.data())
def test_any_change_changes_the_digest(events: list[Event], data: st.DataObject) -> None:
    """A missing event, a repeated event and a changed byte each change the digest."""
    digest = counted(events).digest
    place = data.draw(st.integers(0, len(events) - 1))
    event_id, instant, text = events[place]
    assert counted(events[:place], events[place + 1 :]).digest != digest
    assert counted(events, [events[place]]).digest != digest
    changed = (event_id, instant, text.replace(b"}", b" }"))
    assert counted([*events[:place], changed], events[place + 1 :]).digest != digest


@pytest.mark.parametrize(
    ("bookmark", "start", "expected"),
    [(None, None, None), (None, START, START), (END, START, END), (START, END, END)],
)
def test_a_chain_starts_at_the_later_of_bookmark_and_start(
    bookmark: Instant | None, start: Instant | None, expected: Instant | None
) -> None:
    """Events before that time are in no record."""
    chain = continued_chain(
        None,
        range_start=start,
        action_types=[],
        watermark=Watermark(bookmark),
        read_until=bookmark or EARLIEST,
    )
    covered_from = chain.start
    assert covered_from == (expected or parse_instant("0001-01-01T00:00:00Z"))


GOOD = counted([an_event(1, 70)]).to_json()


def test_a_coverage_of_an_earlier_version_is_read() -> None:
    """If it were refused, each run after an update would fail."""
    written = {
        "covered_from": "2024-05-06T08:00:00Z",
        "action_types": ["a"],
        "previous_digest": "ab" * 32,
        "events": 1,
        "late_events": 0,
        "first_event_at": "2024-05-06T08:10:00Z",
        "last_event_at": "2024-05-06T08:10:00Z",
        "digest": "cd" * 32,
        "organization_id": "organization",
    }
    coverage = Coverage.from_json(written)
    assert (coverage.start, coverage.events, coverage.digest) == (START, 1, "cd" * 32)


WRONG: tuple[Any, ...] = (..., {}, "x", -1.5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name in GOOD
        for value in WRONG
        if (name, value) != ("exclude_action_types", ...)  # not in a state of an earlier version
    ],
)
def test_a_coverage_in_another_form_is_refused(name: str, value: object) -> None:
    """Every wrong value leads to the same error, which contains no secret."""
    broken = dict(GOOD)
    if value is ...:
        del broken[name]
    else:
        broken[name] = value
    with pytest.raises(ValueError, match="its coverage is not as this tap writes it"):
        Coverage.from_json(broken)
