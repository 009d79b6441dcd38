"""Services that respond to several threads at once, in memory."""

import threading

from tap_audit_events.events.page import Page
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.window_reader import WindowRequest
from tests.extraction.planning.scheduling import Play, evenly

PAGE_SIZE = 10
WAIT_SECONDS = 15
"""How long a test waits for a thread before it fails."""


class FakeService:
    """Responds to several threads at once, and keeps a record of them."""

    def __init__(self, pages: int) -> None:
        self._play = Play(evenly(pages * PAGE_SIZE), page_size=PAGE_SIZE)
        self._lock = threading.Lock()
        self.threads: set[threading.Thread] = set()
        self.requests = self.in_flight = self.most_in_flight = 0

    def send(self, request: WindowRequest) -> Page:
        return self.fetch(request.window, request.cursor)

    def fetch(self, window: Window, cursor: str | None) -> Page:
        """The page of a window at a cursor."""
        with self._lock:
            self.threads.add(threading.current_thread())
            self.requests += 1
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return self.respond(window, cursor)
        finally:
            with self._lock:
                self.in_flight -= 1

    def respond(self, window: Window, cursor: str | None) -> Page:
        _, page = self._play._respond(WindowRequest(None, window, cursor))  # type: ignore[arg-type]
        return page


class Patient(FakeService):
    """Responds after a moment, or as soon as so many requests are in flight."""

    def __init__(self, pages: int, together: int) -> None:
        super().__init__(pages)
        self._together = together
        self._are_together = threading.Event()

    def respond(self, window: Window, cursor: str | None) -> Page:
        if self.in_flight == self._together:
            self._are_together.set()
        self._are_together.wait(1)
        return super().respond(window, cursor)


class Hanging(FakeService):
    """Responds to so many requests and lets the others hang until the test ends."""

    def __init__(self, responds: int) -> None:
        super().__init__(pages=200)
        self._responds = responds
        self.hangs = threading.Event()
        self.released = threading.Event()

    def respond(self, window: Window, cursor: str | None) -> Page:
        if self.requests > self._responds:
            self.hangs.set()
            self.released.wait(WAIT_SECONDS)
        return super().respond(window, cursor)


def ended(threads: set[threading.Thread]) -> bool:
    """Whether all the threads end."""
    for thread in threads:
        thread.join(WAIT_SECONDS)
    return not any(thread.is_alive() for thread in threads)
