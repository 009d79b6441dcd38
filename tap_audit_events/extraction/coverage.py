"""Evidence of the ranges that were read: a chain of records, each beginning where the last ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any

import msgspec

from tap_audit_events.events.exact_json import JsonText
from tap_audit_events.events.instants import EARLIEST, Instant, parse_instant, text_of
from tap_audit_events.extraction.watermark import Watermark

_Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class Coverage(msgspec.Struct):
    """Counts what one organization's runs have delivered since the last record of the chain.

    Attributes:
        covered_from: start of the next record. Earlier records cover everything before it that was
            requested. All times are texts in UTC form.
        action_types: which events are requested, empty for all.
        exclude_action_types: which events are left out.
        previous_digest: the digest of the previous record, None for the first one.
        digest: the digest of the events counted so far: see `digest_number`.
    """

    covered_from: str
    action_types: list[str]
    exclude_action_types: list[str]
    previous_digest: _Digest | None = None
    events: int = 0
    late_events: int = 0
    first_event_at: str | None = None
    last_event_at: str | None = None
    digest: _Digest = "0" * 64

    @property
    def start(self) -> Instant:
        return parse_instant(self.covered_from)

    def add(
        self, ids: Sequence[str], instants: Sequence[Instant], texts: Sequence[JsonText]
    ) -> None:
        """Count events that have been written; the order does not matter."""
        if not ids:
            return
        start = self.start
        self.events += len(ids)
        self.late_events += sum(instant < start for instant in instants)
        first_and_last = filter(None, (self.first_event_at, self.last_event_at))
        counted = [*map(parse_instant, first_and_last), *instants]
        self.first_event_at = text_of(min(counted))
        self.last_event_at = text_of(max(counted))
        total = int(self.digest, 16) + sum(map(digest_number, ids, texts))
        self.digest = f"{total % 2**256:064x}"

    def record(
        self, organization_id: str, covered_until: Instant, read_at: Instant
    ) -> dict[str, Any]:
        """The record of a range that was read to its end and is not empty.

        `read_at` is the time at which the run began to read, before its first request.
        """
        return {
            "organization_id": organization_id,
            "covered_until": text_of(covered_until),
            "read_at": text_of(read_at),
            **self.to_json(),
        }

    def following(self, covered_until: Instant) -> Coverage:
        return Coverage(
            text_of(covered_until), self.action_types, self.exclude_action_types, self.digest
        )

    # STATE

    def to_json(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Coverage:
        """The coverage in an object that `to_json` returned; `ValueError` for any other object."""
        try:
            value = {"exclude_action_types": [], **value}  # older versions could exclude nothing
            # Not strict: tools that store states may write an integer as 3.0.
            coverage = msgspec.convert(value, cls, strict=False)
            if {**value, **coverage.to_json()} != value:
                raise ValueError("a value is missing")
            for time in (coverage.covered_from, coverage.first_event_at, coverage.last_event_at):
                if time is not None and text_of(parse_instant(time)) != time:
                    raise ValueError("a time is not in UTC form")
        except ValueError as error:
            raise ValueError(f"its coverage is not as this tap writes it: {error}") from None
        return coverage


def digest_number(event_id: str, text: JsonText) -> int:
    """The number of one event: the SHA-256 of its id, a NUL, and its JSON text as delivered.

    A digest is the sum of these numbers, modulo 2 to the power of 256. So it does not depend on the
    order, and an event that is missing, added or changed changes it.
    """
    return int.from_bytes(sha256(event_id.encode() + b"\0" + text).digest())


def continued_chain(
    chain: Coverage | None,
    *,
    range_start: Instant | None,
    action_types: Collection[str],
    exclude_action_types: Collection[str] = (),
    watermark: Watermark,
    read_until: Instant,
) -> Coverage:
    """The chain of earlier runs, if it fits the range of this run; otherwise a new one.

    A new chain starts at the bookmark or the start of the range, whichever is later.

    Args:
        chain: that of earlier runs, None if there is none.
        range_start: the start of the range that this run reads.
        action_types: those of this run.
        exclude_action_types: those of this run.
        watermark: what earlier runs delivered.
        read_until: the bookmark that the last run left, `EARLIEST` if there is none.
    """
    if chain is not None:
        is_adjacent = range_start is None or range_start <= max(chain.start, read_until)
        is_covered = (watermark.covered_from or EARLIEST) <= chain.start
        is_same = set(chain.action_types) == set(action_types)
        is_same = is_same and set(chain.exclude_action_types) == set(exclude_action_types)
        if is_adjacent and is_covered and is_same:
            return chain
    start = max(watermark.bookmark or EARLIEST, range_start or EARLIEST)
    return Coverage(text_of(start), list(action_types), list(exclude_action_types))
