"""The end of a run: errors, signals and defects; the threads end too."""

import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import islice

import pytest

from tap_audit_events.errors.exceptions import RefusedError, StoppedError, service_error
from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.window_reader import WindowPage
from tap_audit_events.extraction.shutdown import Stop
from tests.extraction.planning.fake_service import (
    WAIT_SECONDS,
    FakeService,
    Hanging,
    ended,
)
from tests.extraction.test_workers import APlan, ids_of, pages_of, workers_for


def test_an_error_is_raised_after_the_pages_before_it() -> None:
    """The main thread raises it, and the threads end, even if those pages wait when it happens."""
    refused = threading.Event()

    class Refusing(FakeService):
        def respond(self, window: Window, cursor: str | None) -> Page:
            if cursor == "30":
                refused.set()
                raise service_error("AE-403")
            return super().respond(window, cursor)

    service = Refusing(pages=9)
    ids: list[int] = []
    with pytest.raises(RefusedError):
        ids.extend(iter_ids(pages_of(workers_for(service, most=1)), refused))
    assert ids == list(range(30))
    assert service.requests == 4
    assert ended(service.threads)


def iter_ids(pages: Iterator[WindowPage], event: threading.Event) -> Iterator[int]:
    """The ids of the pages; the event must happen before they are used."""
    for read in pages:
        assert event.wait(WAIT_SECONDS)
        yield from ids_of(iter([read]))


@pytest.mark.parametrize("responds", [0, 1, 30])
def test_a_signal_ends_the_wait_at_once(responds: int) -> None:
    """Requests that hang do not keep the process alive; their threads end after their responses."""
    service, stop = Hanging(responds), Stop()

    def interrupt() -> None:
        service.hangs.wait(WAIT_SECONDS)
        stop.request(15)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(StoppedError):
        ids_of(pages_of(workers_for(service, stop=stop)))
    assert service.in_flight > 0
    assert all(thread.daemon for thread in service.threads)
    service.released.set()
    assert ended(service.threads)
    assert service.requests <= responds + 4 + 4  # those that hung, and those just handed out


def test_a_second_signal_ends_the_process_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first signal asks the run to stop; one within a tenth of a second counts as the same."""
    times, codes = iter([100.0, 100.1, 100.2]), list[int]()
    stop = Stop(lambda: next(times))
    monkeypatch.setattr("os._exit", codes.append)
    for _ in range(2):
        stop.handle(signal.SIGTERM, None)
        assert (stop.signal_number, stop.wakeups.qsize(), codes) == (signal.SIGTERM, 1, [])
    stop.handle(signal.SIGINT, None)
    assert codes == [130]


def test_the_threads_end_if_the_caller_ends_early() -> None:
    """The caller may end because the target no longer reads."""
    taken, is_closed = threading.Event(), threading.Event()

    class Holding(FakeService):
        def respond(self, window: Window, cursor: str | None) -> Page:
            if taken.is_set():
                is_closed.wait(WAIT_SECONDS)
            return super().respond(window, cursor)

    service = Holding(pages=1000)
    with closing(pages_of(workers_for(service))) as pages:
        assert len(list(islice(pages, 5))) == 5
        taken.set()
        sent = service.requests
    is_closed.set()
    assert ended(service.threads)
    assert service.requests <= sent + 4


@pytest.mark.parametrize("name", ["accept", "next_request"])
@pytest.mark.parametrize("after", [1, 20])
def test_a_defect_in_a_thread_ends_the_run(
    name: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the main thread would wait for ever for a page that no thread requests."""
    works = getattr(APlan, name)
    calls = 0

    def fails(*arguments: object) -> object:
        nonlocal calls
        calls += threading.current_thread() is not threading.main_thread()
        if calls >= after and threading.current_thread() is not threading.main_thread():
            raise RuntimeError("a defect")
        return works(*arguments)

    monkeypatch.setattr(APlan, name, fails)
    service = FakeService(pages=200)
    with pytest.raises(RuntimeError, match="a defect"):
        ids_of(pages_of(workers_for(service)))
    assert ended(service.threads)
