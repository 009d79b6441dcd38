"""Ids in the form in which STATE keeps them: digests in groups, each group with one instant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Final, TypeAlias

from tap_audit_events.events.instants import Instant

DIGEST_BYTES: Final = 8
"""The ADR "The watermark in STATE" gives the probability that two ids have the same digest."""

Known: TypeAlias = tuple[Instant, str | bytes]
"""An event's instant and id; if an earlier run delivered it, its group's instant and its digest."""


@dataclass(frozen=True, slots=True)
class Group:
    """The digests of some ids.

    Attributes:
        until: the newest instant of the ids. The group expires with it, as a whole.
        digests: `DIGEST_BYTES` for each id, joined.
    """

    until: Instant
    digests: bytes

    def split(self) -> list[bytes]:
        starts = range(0, len(self.digests), DIGEST_BYTES)
        return [self.digests[start : start + DIGEST_BYTES] for start in starts]


def digest_of(event_id: str) -> bytes:
    """The digest of one id, which may hold lone surrogates."""
    return blake2b(event_id.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def grouped(known: Iterable[Known], *, bookmark: Instant, size: int) -> list[Group]:
    """Ids in groups of at most `size`, more only if all are of one instant.

    The ids are given in ascending order of their instants. A group expires with its newest instant,
    so `size` bounds how many ids are kept longer than necessary. The bookmark's own instant is not
    grouped with others: its ids are kept however many they are.
    """
    groups: list[tuple[Instant, list[bytes]]] = []
    for instant, same in groupby(known, key=itemgetter(0)):
        digests = [each if isinstance(each, bytes) else digest_of(each) for _, each in same]
        if groups:
            until, before = groups[-1]
            is_same_side = instant < bookmark or until > bookmark
            if is_same_side and len(before) + len(digests) <= size:
                before += digests
                groups[-1] = instant, before
                continue
        groups.append((instant, digests))
    return [Group(until, b"".join(digests)) for until, digests in groups]
