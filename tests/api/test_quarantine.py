"""Events that cannot be used are in the file before any state covers their page."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events import AuditEvents, AuditEventsError
from tap_audit_events.sandbox import Service
from tests.api.logs import events, expected, first_pages, ids
from tests.builders import an_event
from tests.run.test_quarantine import lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "quarantine.jsonl"


@pytest.fixture
def log(service: Service, settings: dict[str, Any], path: Path) -> AuditEvents:
    """60 events, an event that cannot be used after each tenth."""
    service.add(events(0, 60))
    service.add(an_event(id="", at=f"2024-05-06T07:00:{n}9.5Z") for n in range(6))
    return AuditEvents(**settings, quarantine_file=str(path), page_size=11, concurrency=1)


def test_the_event_is_in_the_file_before_the_page_has_a_state(log: AuditEvents, path: Path) -> None:
    """A state that covers a page says that its unusable events are kept."""
    counts = [(len(page), len(lines(path))) for page in log.pages()]
    assert counts == [(10, number) for number in range(1, 7)]


@pytest.mark.parametrize("count", range(7))
def test_a_run_that_was_killed_leaves_each_event_once(
    count: int, log: AuditEvents, path: Path
) -> None:
    """Pages that no state covers are read again; their unusable events are not appended again."""
    _, state = first_pages(log, count, None)
    with closing(log.pages(state=state)) as pages:  # killed before its state is stored
        next(pages, None)
    assert len(ids(log.pages(state=state))) == 60 - 10 * count
    assert len(lines(path)) == 6


def test_no_page_is_passed_whose_event_cannot_be_written(log: AuditEvents, path: Path) -> None:
    """The states before the error remain valid, and the next run writes the event."""
    pages = log.pages()
    page = next(pages)
    path.unlink()
    path.mkdir()
    with pytest.raises(AuditEventsError, match="AE-QUARANTINE: "):
        next(pages)
    path.rmdir()
    assert ids([page]) + ids(log.pages(state=page.state)) == expected(60)
    assert len(lines(path)) == 6
