"""The threads that send requests: how many pay, and that none is waited for in vain."""

from collections.abc import Callable

import pytest

from tap_audit_events.export import Export
from tap_audit_events.sandbox import Service
from tap_audit_events.tap import TapAuditEvents
from tap_audit_events.workers import Pays
from tests.builders import an_event

PAGE_SECONDS = 0.004
"""What a page takes of the processor."""


def processor() -> Callable[[], float]:
    """A clock that goes on by a page each time it is read, but for the first."""
    readings = iter(range(10_000))
    return lambda: next(readings) * PAGE_SECONDS


@pytest.mark.parametrize(
    ("reply_seconds", "most"), [(0.001, 1), (0.004, 1), (0.0121, 3), (0.1001, 25), (1.001, 250)]
)
def test_as_many_pay_as_fit_into_a_reply(reply_seconds: float, most: int) -> None:
    """None but one where the service replies at once."""
    pays = Pays(processor())
    assert pays.most == 1
    for _ in range(40):
        pays.learn(reply_seconds)
    assert pays.most == most


def test_a_reply_that_is_quicker_or_slower_than_others_does_not_count() -> None:
    """As that of a short page, or one that had to be asked for again."""
    pays = Pays(processor())
    for number in range(40):
        pays.learn({0: 0.001, 1: 5.0}.get(number % 8, 0.1001))
    assert pays.most == 25


def test_it_follows_a_service_that_becomes_slower() -> None:
    """The last replies count."""
    pays = Pays(processor())
    for _ in range(40):
        pays.learn(0.001)
    for _ in range(16):
        pays.learn(0.1001)
    assert pays.most == 25


def test_a_defect_in_a_thread_ends_the_run(
    service: Service, settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main thread would wait for ever for a page that nobody asks for."""

    def came(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(Export, "came", came)
    service.add([an_event(id="1", at="2024-05-06T07:08:09Z")])
    with pytest.raises(RuntimeError, match="a defect"):
        TapAuditEvents(config=settings).sync_all()
