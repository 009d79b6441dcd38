"""The file of events that cannot be delivered: see the setting ``quarantine_file``."""

from __future__ import annotations

import os
import re
import stat
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from tap_audit_events.errors.exceptions import AuditEventsError, sanitize
from tap_audit_events.errors.redaction import redact
from tap_audit_events.events.instants import instant_of, text_of
from tap_audit_events.run.disk import best_effort, sync_folder

MAX_DIGESTS: Final = 100_000
"""Maximum number of events that are remembered, the newest ones: an older one that is found again
is appended again."""

_END: Final = re.compile(rb',"digest":"([0-9a-f]{64})"\}\n\Z')
"""The end of a complete line. It occurs nowhere else: inside a string, quotes are escaped."""

_END_BYTES: Final = len(',"digest":""}\n') + 64
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_MODE: Final = 0o600


@dataclass(frozen=True, kw_only=True)
class QuarantinedEvent:
    """An event that cannot be delivered.

    Attributes:
        organization_id: UUID of its organization.
        text: exactly the bytes that the service sent.
        code: the code of the error, as in the catalogue.
        reason: what is wrong; text from outside has passed `sanitize`.
        window: the window in which it was found, as text; empty if that is not known.
        position: its position on its page, counted from 1; None if that is not known.
    """

    organization_id: str
    text: bytes
    code: str
    reason: str
    window: str = ""
    position: int | None = None

    @property
    def digest(self) -> str:
        """The digest by which the same event is recognized."""
        return sha256(f"{self.organization_id.lower()}\0".encode() + self.text).hexdigest()

    def line(self, found_at: str) -> bytes:
        """The line of the file, with its line break. The digest comes last: see `_END`."""
        fields: dict[str, Any] = {
            "found_at": found_at,
            "organization_id": self.organization_id,
            "code": self.code,
            "reason": redact(self.reason),
            "window": self.window,
            "position": self.position,
        }
        try:
            fields["event"] = self.text.decode()
        except UnicodeDecodeError:
            fields["event_base64"] = b64encode(self.text).decode()
        return msgspec.json.encode(fields | {"digest": self.digest}) + b"\n"


class Added(NamedTuple):
    """What `QuarantineFile.add` has done with events.

    Attributes:
        appended: events that were appended.
        known: events that were in the file already, without those of earlier calls of `add`.
    """

    appended: int
    known: int


class QuarantineFile:
    """A file of JSON Lines to which events are appended, each once.

    It is opened only while it is written or read, so nothing has to be closed, and another program
    may move it away. It is created at once, so that a wrong path is noticed at the start of a run.
    Several processes may append to the same file; each may then append the same event.

    Args:
        path: its path.
        now: the clock.

    Raises:
        AuditEventsError: it cannot be created or opened (``AE-QUARANTINE``).

    Example:
        >>> quarantine = QuarantineFile(Path("quarantine.jsonl"))
        >>> event = QuarantinedEvent(organization_id=…, text=…, code="AE-EVENT", reason="…")
        >>> quarantine.add([event]).appended  # on the disk now: a state may cover the event
        1
    """

    def __init__(
        self, path: Path, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.path = path
        self._now = now
        self._is_seen: OrderedDict[str, bool] | None = None  # by digest; not read yet
        with self._errors():
            os.close(self._open())

    def add(self, events: Iterable[QuarantinedEvent]) -> Added:
        """Append those events that are not in the file. They are on the disk when this returns.

        Raises:
            AuditEventsError: the file cannot be written or read (``AE-QUARANTINE``). What was
                appended before that may stay in it.
        """
        found = {event.digest: event for event in events}
        if not found:
            return Added(0, 0)
        with self._errors():
            is_seen = self._digests()
            new = {digest: event for digest, event in found.items() if digest not in is_seen}
            if new:
                self._append(new.values())
        known = sum(is_seen.get(digest) is False for digest in found)
        _remember(is_seen, found, is_seen=True)
        return Added(len(new), known)

    def _append(self, events: Iterable[QuarantinedEvent]) -> None:
        found_at = text_of(instant_of(self._now()))
        descriptor = self._open()
        with closing(os.fdopen(descriptor, "rb", buffering=0)):
            size = os.fstat(descriptor).st_size
            # A process that was killed may have left half a line.
            start = b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""
            for event in events:
                line = start + event.line(found_at)
                # In one call, so that lines of several processes do not interleave.
                if os.write(descriptor, line) < len(line):
                    raise OSError(0, "only a part of a line could be written: is the disk full?")
                start = b""
            with best_effort():
                os.fsync(descriptor)
        sync_folder(self.path.parent)

    def _digests(self) -> OrderedDict[str, bool]:
        """The digests of the complete lines, the newest last, and whether `add` has seen them."""
        if self._is_seen is None:
            digests: OrderedDict[str, bool] = OrderedDict()
            with os.fdopen(self._open(), "rb") as file:
                for line in file:
                    if end := _END.search(line[-_END_BYTES:]):
                        _remember(digests, [end[1].decode()], is_seen=False)
            self._is_seen = digests
        return self._is_seen

    def _open(self) -> int:
        descriptor = os.open(self.path, _FLAGS, _MODE)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(0, "it exists, but is not a file")
        return descriptor

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise AuditEventsError(
                "AE-QUARANTINE", f": {sanitize(self.path)}: {sanitize(reason)}"
            ) from error


def _remember(digests: OrderedDict[str, bool], more: Iterable[str], *, is_seen: bool) -> None:
    digests.update(dict.fromkeys(more, is_seen))
    while len(digests) > MAX_DIGESTS:
        digests.popitem(last=False)
