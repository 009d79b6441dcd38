"""Pages that a fork of this process reads, while this process writes them.

Within one process, Python lets one thread work at a time: reading would take its time from writing.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, Final, TypeAlias

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.extraction.shutdown import Stop

Read: TypeAlias = Callable[[Mapping[str, Any]], Generator[EventPage, None, None]]
"""Reads the pages after a state."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class _End:
    """What the fork sends last: the state of the last page, and what ended it early."""

    state: dict[str, Any] | None
    error: AuditEventsError | None


class ReadingProcess:
    """A fork that waits until it is told where to begin. Leaving the ``with`` block ends it.

    Start it while this process has no thread, no lock and no output: the fork would hold them too.

    Args:
        read: reads the pages; called in the fork.
        shape: of the events.
        stop: ends the run at a signal. Signals of this process are passed on to the fork.
    """

    def __init__(self, read: Read, shape: RecordShape, stop: Stop) -> None:
        self._shape = shape
        self._connection, theirs = multiprocessing.Pipe()
        arguments = (read, stop, theirs, self._connection)
        # Of the ways to start a process, only this one needs no second start of Python.
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._theirs = theirs

    def __enter__(self) -> Read:
        self._process.start()
        self._theirs.close()
        return self._pages

    def __exit__(self, *exception: object) -> None:
        self._connection.close()  # which ends the fork, whatever it does
        self._process.join()

    def _pages(self, state: Mapping[str, Any]) -> Generator[EventPage, None, None]:
        """The pages. The state of the last one is known when all have come.

        Raises:
            AuditEventsError: as `AuditEvents.pages`.
            ChildProcessError: the fork was killed.
        """
        end = _End(None, None)

        def state_at_end() -> dict[str, Any]:
            return end.state or {}

        with self._signals_passed_on():
            self._send(state)
            while not isinstance(message := self._received(), _End):
                organization_id, texts, instants = message
                yield EventPage(
                    texts,
                    instants,
                    organization_id=organization_id,
                    shape=self._shape,
                    state=state_at_end,
                )
        end = message
        if end.error is not None:
            raise end.error

    def _send(self, state: Mapping[str, Any]) -> None:
        with suppress(BrokenPipeError):  # `_received` says why
            self._connection.send(state)

    def _received(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            raise ChildProcessError(
                f"the process that reads ended with exit code {self._process.exitcode}; -9 is often"
                " the system's answer to a lack of memory"
            ) from None

    @contextmanager
    def _signals_passed_on(self) -> Iterator[None]:
        with ExitStack() as restored:
            for number in _SIGNALS:
                before = signal.getsignal(number)
                signal.signal(number, self._passing_on(before))
                restored.callback(signal.signal, number, before)
            yield

    def _passing_on(self, before: Any) -> Callable[[int, FrameType | None], None]:
        def handle(number: int, frame: FrameType | None) -> None:
            if callable(before):
                before(number, frame)
            if self._process.is_alive() and self._process.pid is not None:
                os.kill(self._process.pid, number)

        return handle


def _serve(read: Read, stop: Stop, connection: Connection, parents: Connection) -> None:
    """Read pages and send them: the fork."""
    parents.close()
    for number in _SIGNALS:  # the terminal sends them to both, and the parent passes its own on
        signal.signal(number, lambda each, _: stop.request(each))
    try:
        state = connection.recv()
        threading.Thread(target=_end_with_parent, args=(connection,), daemon=True).start()
        connection.send(_sent(read, state, connection))
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the parent has ended
        os._exit(0)


def _sent(read: Read, state: Mapping[str, Any], connection: Connection) -> _End:
    last: EventPage | None = None
    error: AuditEventsError | None = None
    try:
        with closing(read(state)) as pages:
            for page in pages:
                connection.send((page.organization_id, page.raw, page.instants))
                last = page
    except AuditEventsError as ended_by:
        error = ended_by
    return _End(None if last is None else last.state, error)


def _end_with_parent(connection: Connection) -> None:
    """End this process when the parent ends or closes the connection, even if it waits."""
    with suppress(EOFError, OSError):
        connection.recv()
    os._exit(0)
