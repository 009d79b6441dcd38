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
    """Merge neighbors into groups of at most `size` ids, more only if all have one instant.

    A merged group expires with the newest instant in it, so `size` bounds how many ids are kept
    longer than necessary. No group joins the bookmark's own instant with others: the ids of that
    instant are kept however many they are.

    Args:
        groups: in ascending order of their instants.
        bookmark: the instant that is not joined with others.
        size: ids in a merged group at most. Larger groups stay as they are.
    """
    merged: list[list[Group]] = []
    count = 0
    for group in groups:
        if merged and _belong_together(merged[-1][-1], group, bookmark, count, size):
            merged[-1].append(group)
            count += group.count
        else:
            merged.append([group])
            count = group.count
    return [Group(same[-1].until, b"".join(group.digests for group in same)) for same in merged]


def _belong_together(
    group: Group, following: Group, bookmark: Instant, count: int, size: int
) -> bool:
    if group.until == following.until:
        return True
    same_side = following.until < bookmark or group.until > bookmark
    return same_side and count + following.count <= size
