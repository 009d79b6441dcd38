"""The iterator that `AuditEvents.pages` returns, closed or interrupted while it is in use."""

import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tap_audit_events import EventPage
from tap_audit_events.api.page_iterator import PageIterator
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.extraction.shutdown import Stop
from tests.api.logs import WAIT_SECONDS


def test_a_run_that_is_closed_while_a_page_is_read_ends_after_the_page() -> None:
    """Nobody may advance the run any more, so it must not keep its connections."""
    has_ended = threading.Event()

    def pages() -> Generator[EventPage, None, None]:
        try:
            closing_thread = threading.Thread(target=iterator.close)
            closing_thread.start()
            closing_thread.join(WAIT_SECONDS)
            yield EventPage([], [], organization_id="o", shape=RecordShape(), state=dict)
        finally:
            has_ended.set()

    iterator = PageIterator(pages(), Stop())
    assert next(iterator, None) is not None
    assert has_ended.is_set()


def test_a_run_that_another_thread_is_closing_is_at_its_end() -> None:
    """The thread that reads gets no exception, even if the connections have not ended yet."""
    closes, continues = threading.Event(), threading.Event()

    def pages() -> Generator[EventPage, None, None]:
        try:
            yield EventPage([], [], organization_id="o", shape=RecordShape(), state=dict)
        finally:
            closes.set()
            continues.wait(WAIT_SECONDS)

    iterator = PageIterator(pages(), Stop())
    next(iterator)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(iterator.close)
        assert closes.wait(WAIT_SECONDS)
        try:
            assert next(iterator, None) is None
        finally:
            continues.set()


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_an_interruption_is_raised_again_if_the_iterator_is_used_again(
    error: type[BaseException],
) -> None:
    """After Ctrl-C or a time limit, as in a notebook, the range must not seem complete."""

    def pages() -> Generator[EventPage, None, None]:
        yield EventPage([], [], organization_id="o", shape=RecordShape(), state=dict)
        raise error

    iterator = PageIterator(pages(), Stop())
    next(iterator)
    for _ in range(3):
        with pytest.raises(error):
            next(iterator)
    iterator.close()
    assert next(iterator, None) is None
