"""Ids in the form in which STATE keeps them: digests in groups, each group with one instant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from tap_audit_events.events.instants import Instant

DIGEST_BYTES: Final = 8
"""The ADR "The watermark in STATE" gives the probability that two ids have the same digest."""


@dataclass(frozen=True, slots=True)
class Group:
    """The digests of some ids, at least one.

    Attributes:
        until: the newest instant of the ids. The group expires with it, as a whole.
        digests: `DIGEST_BYTES` for each id, joined.
    """

    until: Instant
    digests: bytes

    @property
    def count(self) -> int:
        """How many ids there are."""
        return len(self.digests) // DIGEST_BYTES


def digest_of(event_id: str) -> bytes:
    """The digest of one id, which may hold lone surrogates."""
    return blake2b(event_id.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()


def digests_of(ids: Iterable[str]) -> bytes:
    """The digests of ids, joined."""
    return b"".join(map(digest_of, ids))


def split_digests(digests: bytes) -> list[bytes]:
    """Joined digests, one by one."""
    return [digests[start : start + DIGEST_BYTES] for start in range(0, len(digests), DIGEST_BYTES)]


def merge_groups(groups: Sequence[Group], *, bookmark: Instant, size: int) -> list[Group]:
    """Merge neighbors into groups of at most `size` ids.

    A merged group expires with the newest instant in it, so `size` bounds how many ids are kept
    longer than necessary. Ids of the bookmark's own instant become one group, however many; they
    are never merged with others, because they never expire before the bookmark moves.

    Args:
        groups: in ascending order of their instants.
        bookmark: the instant that no merged group crosses.
        size: ids in a merged group at most. Larger groups stay as they are.
    """
    merged: list[list[Group]] = []
    count = 0
    for group in groups:
        is_tie = group.until == bookmark
        if (
            merged
            and _side(merged[-1][-1], bookmark) == _side(group, bookmark)
            and (is_tie or count + group.count <= size)
        ):
            merged[-1].append(group)
            count += group.count
        else:
            merged.append([group])
            count = group.count
    return [Group(parts[-1].until, b"".join(group.digests for group in parts)) for parts in merged]


def _side(group: Group, bookmark: Instant) -> int:
    """Before the bookmark, at it, or after it: -1, 0 or 1."""
    return (group.until > bookmark) - (group.until < bookmark)
