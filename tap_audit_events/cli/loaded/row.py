"""A loaded event: its organization, its id and its time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from tap_audit_events.errors.exceptions import OutputError
from tap_audit_events.events.instants import (
    Instant,
    later,
    microseconds,
    next_whole_second,
    parse_instant,
    utc_instants,
    whole_second,
)

BATCH_ROWS: Final = 10_000
NANOSECONDS: Final = 1_000_000_000

_OFFSET: Final = re.compile(r"([+-][0-9]{2})(?::?([0-9]{2}))?$")


class Row(NamedTuple):
    """A loaded event.

    Attributes:
        organization_id: its organization, None if it is not known.
        id: its id.
        time: its time as text, as it was stored.
    """

    organization_id: str | None
    id: str
    time: str | None


@dataclass(frozen=True, slots=True)
class Range:
    """The range that is compared.

    Attributes:
        start: first instant.
        end: last instant.
    """

    start: Instant
    end: Instant

    def holds(self, instant: Instant) -> bool:
        """Whether a time is in the range."""
        return self.start <= instant <= self.end

    def widened(self, unit_nanoseconds: int) -> Range:
        """The range and the times around it that a table might round into it."""
        if not unit_nanoseconds:
            return self
        seconds = -(-unit_nanoseconds // NANOSECONDS)
        return Range(
            later(whole_second(self.start), seconds=-seconds),
            later(next_whole_second(self.end), seconds=seconds),
        )


class Loaded(Protocol):
    """A place into which events were loaded.

    Attributes:
        name: what it is called in messages; contains no password.
        has_organizations: whether each event has its organization.
        guesses_organizations: whether the organization may only be in ``scope.organizationId``,
            whose form the service chooses (interface.md 2.6).
        unit_nanoseconds: the smallest difference between two times that it can store, 0 if it
            stores every digit.
    """

    name: str

    @property
    def has_organizations(self) -> bool: ...
    @property
    def guesses_organizations(self) -> bool: ...
    @property
    def unit_nanoseconds(self) -> int: ...

    def columns(self) -> Collection[str] | None:
        """The columns that each table or file has; None if they are not known."""

    @property
    def columns_are_all(self) -> bool:
        """Whether `columns` has also those in which no event has a value."""

    def rows(self, within: Range) -> Iterator[Sequence[Row]]:
        """All rows of a range, perhaps with others, at most `BATCH_ROWS` at a time.

        Raises:
            OutputError: they cannot be read (code ``AE-LOADED``).
        """


def instants_of(texts: Sequence[str | None]) -> list[Instant | None]:
    """The instants of times as loaders write them; None for a text that is not a time.

    A time without an offset is in UTC. The date and the time may be separated by a space, and an
    offset may be written as ``+02``, ``+0200`` or ``+02:00``.
    """
    present = [text for text in texts if text is not None]
    if len(present) == len(texts) and (quick := utc_instants(present)) is not None:
        return list(quick)
    return [_instant(text) for text in texts]


@lru_cache(maxsize=1024)
def organization_form(text: str) -> str:
    """An organization as the settings name it: a UUID in lower case, whatever its form was.

    Databases and programs also write a UUID in upper case, in braces or without hyphens.
    """
    with suppress(ValueError):
        return str(UUID(text.strip().lower()))
    return text.lower()


def nanoseconds(instant: Instant) -> int:
    """The whole nanoseconds since the year 1 began."""
    return microseconds(instant) * 1000 + int(instant[26:29].ljust(3, "0"))


class NoTableError(OutputError):
    """A database has no such table."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}", "AE-LOADED")


def unreadable(name: str, reason: Any) -> OutputError:
    """The error for loaded events that cannot be read."""
    return OutputError(f"{name}: {reason}", "AE-LOADED")


def _instant(text: str | None) -> Instant | None:
    if text is None:
        return None
    form = text.strip().replace(" ", "T", 1)
    if len(form) == len("2026-01-31"):
        form += "T00:00:00"
    if offset := _OFFSET.search(form, len("2026-01-31")):
        form = f"{form[: offset.start()]}{offset[1]}:{offset[2] or '00'}"
    elif not form.endswith(("Z", "z")):
        form += "Z"
    try:
        return parse_instant(form)
    except ValueError:
        return None
