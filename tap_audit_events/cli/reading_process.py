"""A fork of this process that reads pages, while this process writes them.

In one process, Python runs one thread at a time, so reading would slow down writing.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, suppress
from logging.handlers import QueueHandler
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, Final, NamedTuple, TypeAlias

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.api.page_iterator import PageIterator
from tap_audit_events.cli.terminal.signals import handling_signals
from tap_audit_events.errors.exceptions import AuditEventsError, OutputError, defect
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.extraction.shutdown import SIGNALS, Stop

Pages: TypeAlias = PageIterator | Generator[EventPage, None, None]
Read: TypeAlias = Callable[[Mapping[str, Any]], Pages]
"""Reads the pages after a state."""

_SIGNAL_SECONDS: Final = 1.0
"""Longest time of a read: one that begins just after a signal is not interrupted by it."""


class _End(NamedTuple):
    """The last message of the fork: the state of the last page, and the error that ended it."""

    state: dict[str, Any] | None
    error: AuditEventsError | None


class ReadingProcess:
    """A fork that waits for the state from which to read. Leaving the ``with`` block ends it.

    Start it while this process has no thread, lock or output, since the fork would hold them too.
    If the system refuses another process, this process reads.

    Args:
        read: reads the pages; called in the fork.
        shape: the shape of the events.
        stop: ends the run at a signal. Signals of this process are passed on to the fork.
    """

    def __init__(self, read: Read, shape: RecordShape, stop: Stop) -> None:
        self._read = read
        self._shape = shape
        self._stop = stop

    def __enter__(self) -> Read:
        # Of the ways to start a process, only this one needs no second start of Python.
        context = multiprocessing.get_context("fork")
        self._connection, fork_end = multiprocessing.Pipe()
        arguments = (self._read, self._stop, fork_end, self._connection)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        try:
            self._process.start()
        except OSError:
            return self._read
        finally:
            fork_end.close()
        return self._pages

    def __exit__(self, *exception: object) -> None:
        self._connection.close()  # which ends the fork, whatever it does
        if self._process.pid is not None:
            self._process.join()

    def _pages(self, state: Mapping[str, Any]) -> Generator[EventPage, None, None]:
        """The pages. Their state is known when all of them have been received.

        Raises:
            AuditEventsError: as `AuditEvents.pages`.
            OutputError: the fork was killed.
        """
        end = _End(None, None)

        def state_at_end() -> dict[str, Any]:
            return end.state or {}

        with handling_signals(self._pass_on):
            with suppress(OSError):  # the fork has ended: `_received` raises the error
                self._connection.send((state, self._stop.signal_number))
            while not isinstance(message := self._received(), _End):
                organization_id, texts, instants = message
                yield EventPage(
                    texts,
                    instants,
                    organization_id=organization_id,
                    shape=self._shape,
                    state=state_at_end,
                )
                del message, texts, instants
        end = message
        if end.error is not None:
            raise end.error

    def _received(self) -> Any:
        """The next message that is not a log record."""
        try:
            while isinstance(message := self._next_message(), logging.LogRecord):
                logging.getLogger(message.name).handle(message)
        except (EOFError, OSError):
            self._process.join()
            reason = f"the process that reads ended with exit code {self._process.exitcode}"
            if self._process.exitcode == -signal.SIGKILL:
                reason += "; this is often what the system does when memory is short"
            raise OutputError(reason, "AE-EXPORT") from None
        return message

    def _next_message(self) -> Any:
        while not self._connection.poll(_SIGNAL_SECONDS):
            pass
        return self._connection.recv()

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._stop.handle(number, frame)
        if self._process.is_alive() and self._process.pid is not None:
            os.kill(self._process.pid, number)


# The fork


class _Parent:
    """The fork's end of the connection. If the parent has ended, the fork exits at once.

    Args:
        connection: used by several threads, as any thread may log.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, OSError):
            os._exit(0)

    def send(self, message: object) -> None:
        try:
            with self._lock:
                self._connection.send(message)
        except OSError:
            os._exit(0)

    put_nowait = send
    """The method that `QueueHandler` calls."""


def _serve(read: Read, stop: Stop, connection: Connection, parent_end: Connection) -> None:
    """Read pages and send them."""
    parent_end.close()
    for number in SIGNALS:  # may arrive twice: from the terminal and from the parent
        signal.signal(number, lambda each, _: stop.request(each))
    parent = _Parent(connection)
    to_parent: Any = parent  # writes the log, perhaps above a progress bar
    logging.getLogger().handlers[:] = [QueueHandler(to_parent)]
    state, signal_number = parent.receive()
    if signal_number is not None:  # it arrived before the fork could handle it
        stop.request(signal_number)
    with suppress(RuntimeError):  # without a thread, the fork exits when it sends the next page
        threading.Thread(target=parent.receive, daemon=True).start()  # exits when the parent ends
    parent.send(_send_pages(read, state, parent))


def _send_pages(read: Read, state: Mapping[str, Any], parent: _Parent) -> _End:
    """Send all pages, and return the message to send after them."""
    newest_page: EventPage | None = None
    error: AuditEventsError | None = None
    try:
        with closing(read(state)) as pages:
            for page in pages:
                parent.send((page.organization_id, page.raw, page.instants))
                newest_page = page
    except AuditEventsError as ended_by:
        error = ended_by
    except Exception as unexpected:  # noqa: BLE001 - becomes a line and an exit code
        traceback.print_exception(unexpected)
        error = defect(unexpected)
    return _End(None if newest_page is None else newest_page.state, error)
