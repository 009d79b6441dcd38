"""Events that cannot be used are set aside in a file, and the run continues after them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.builders import TOO_DEEP, an_event
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.integrations.test_bounds import LANES, a_page, events, run_against, serving
from tests.run.test_quarantine import lines, texts

NO_ID = an_event(id="", at="2024-05-06T08:00:01.5Z")


def seconds(*numbers: int) -> list[dict[str, Any]]:
    return [an_event(id=f"{each}", at=f"2024-05-06T08:00:{each:02}Z") for each in numbers]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "quarantine.jsonl"


@pytest.mark.parametrize("lane", LANES)
def test_every_kind_of_unusable_event_is_set_aside(lane: str, path: Path) -> None:
    """In each lane; the cursors of their pages are followed, also if a page has no other event."""
    deep = json.loads("[" * 300 + "]" * 300)
    bad = [
        b'{"id": "x", "occurredAt": "2024-05-06T07:08:00Z", "n": NaN, "bytes": "\xff"}',
        TOO_DEEP,
        *(
            json.dumps(an_event(at="2024-05-06T07:08:00Z") | changes).encode()
            for changes in (
                {"id": 7},
                {"id": "\ud800"},
                {"occurredAt": "today"},
                {"more": deep},
                {"more": "x" * 8_000_000},
            )
        ),
    ]

    def page(first: int, cursor: str | None) -> bytes:
        whole = a_page([*events(2, first=first), *["?"] * len(bad)], cursor)
        for text in bad:
            whole = whole.replace(b'"?"', text, 1)
        return whole

    only_bad = a_page(["?"], "c3").replace(b'"?"', bad[0])
    with serving(page(0, "c1"), page(2, "c2"), only_bad, a_page(events(1, first=4))) as service:
        done = run_against(service, quarantine_file=str(path), **LANES[lane])
    assert done.raise_for_exit_code().ids == ["0", "1", "2", "3", "4"]
    assert texts(path) == bad
    codes = [line["code"] for line in lines(path)]
    assert codes == ["AE-EVENT", "AE-NESTING", *["AE-EVENT"] * 3, "AE-NESTING", "AE-EVENT-SIZE"]
    first, last = done.warnings
    assert first.startswith("AE-EVENT: ")
    assert first.endswith("It is set aside, and the run continues")
    assert last.startswith("7 events cannot be used and are not delivered: they are in ")
    assert str(path) in last


def test_an_event_is_set_aside_once(service: Service, sync: Sync, path: Path) -> None:
    """Later runs and windows show it again within the lookback; the file keeps it once."""
    service.add([*seconds(1, 2), NO_ID])
    first = sync(quarantine_file=str(path)).raise_for_exit_code()
    assert first.ids == ["1", "2"]
    service.add([*seconds(3), NO_ID | {"id": None}])
    again = sync(quarantine_file=str(path), state=first.state).raise_for_exit_code()
    assert again.ids == ["3"]
    assert [json.loads(text)["id"] for text in texts(path)] == ["", None]
    assert "2 events cannot be used" in again.warnings[-1]
    assert again.warnings[-1].endswith(", 1 of them since an earlier run")
    assert "1 of the page" not in sync(quarantine_file=str(path), state=again.state).log


def test_without_the_setting_the_event_ends_each_run(
    service: Service, sync: Sync, path: Path
) -> None:
    """The error names the way on, and with it the next run continues from the same state."""
    service.add([*seconds(1, 2), NO_ID])
    ended = sync()
    assert ended.ids == ["1"]
    assert "quarantine_file" in only_error(ended)
    assert only_error(sync(state=ended.state)).startswith("AE-EVENT: ")
    done = sync(state=ended.state, quarantine_file=str(path)).raise_for_exit_code()
    assert done.ids == ["2"]
    assert len(lines(path)) == 1


def test_a_range_of_only_unusable_events_is_read_to_its_end(
    service: Service, sync: Sync, path: Path
) -> None:
    """Nothing is delivered, over several pages; the state of the run is kept."""
    service.add(an_event(id="", at=f"2024-05-06T08:00:{n:02}Z") for n in range(9))
    done = sync(quarantine_file=str(path), page_size=2).raise_for_exit_code()
    assert done.ids == []
    assert len(lines(path)) == 9
    assert done.messages[-1]["type"] == "STATE"


def test_a_window_that_is_read_again_sets_nothing_aside_twice(
    service: Service, sync: Sync, path: Path
) -> None:
    """A refused cursor restarts the window before events that have been set aside."""
    service.add(seconds(*range(40)))
    service.add(an_event(id="", at=f"2024-05-06T08:00:{n:02}.5Z") for n in range(40))
    service.add_faults(["expire@3", "expire@5"])
    done = sync(quarantine_file=str(path), page_size=7, concurrency=1).raise_for_exit_code()
    assert done.ids == [f"{n}" for n in range(40)]
    assert len(lines(path)) == 40


def test_pages_that_repeat_unusable_events_for_ever_are_an_error(
    service: Service, sync: Sync, path: Path
) -> None:
    """A service that ignores the cursor must not keep a run going."""
    service.add(an_event(id="", at=f"2024-05-06T08:00:{n:02}Z") for n in range(9))
    service.add_faults([Fault(kind="ignore-cursor", when="2-")])
    done = sync(quarantine_file=str(path), page_size=2, concurrency=1)
    assert only_error(done).startswith("AE-NO-PROGRESS: ")
    assert len(lines(path)) == 2


def test_status_204_confirmed_by_an_unusable_event_sets_it_aside(
    service: Service, sync: Sync, path: Path
) -> None:
    """The page that confirms it may be the only one to show that event."""
    service.add([*seconds(1), NO_ID])
    service.add_faults([Fault(kind="status", code=204, when="1")])
    done = sync(quarantine_file=str(path)).raise_for_exit_code()
    assert done.ids == ["1"]
    assert len(lines(path)) == 1


def test_each_organization_is_named(service: Service, sync: Sync, path: Path) -> None:
    """All organizations of a run have one file; the same text of each is an event of its own."""
    service.add([*seconds(1), NO_ID])
    given = service.organization_id
    several = {"organization_id": None, "organizations": [{"organization_id": given}]}
    done = sync(quarantine_file=str(path), **several).raise_for_exit_code()
    assert [record["organization_id"] for record in done.records] == [given]
    assert [line["organization_id"] for line in lines(path)] == [given]


def test_a_wrong_path_ends_the_run_at_once(service: Service, sync: Sync, tmp_path: Path) -> None:
    """No event has to come first."""
    service.add(seconds(1))
    for wrong in ("missing/quarantine.jsonl", "."):
        line = only_error(sync(quarantine_file=str(tmp_path / wrong)))
        assert line.startswith("AE-QUARANTINE: ")
        assert service.requests == []
    line = only_error(sync(quarantine_file="https://example.com/quarantine.jsonl"))
    assert line.startswith("AE-SETTINGS: quarantine_file ")
