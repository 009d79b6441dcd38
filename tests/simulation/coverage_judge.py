"""What must hold of the coverage records of one organization."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tap_audit_events.events.instants import EARLIEST, Instant, parse_instant
from tap_audit_events.extraction.coverage import digest_number
from tests.simulation.played_run import Acknowledged, Expected, PlayedRun
from tests.simulation.world import CoverageRecord


@dataclass(frozen=True)
class Chain:
    """What a STATE covers.

    Attributes:
        covered_from: the end of the last record before it.
        pending: the events delivered since then.
        digest: that of the last record, None if there is none.
    """

    covered_from: Instant
    pending: frozenset[str] = frozenset()
    digest: str | None = None

    def with_events(self, ids: Iterable[str]) -> "Chain":
        return Chain(self.covered_from, self.pending.union(ids), self.digest)


class CoverageJudge:
    """Judges the coverage records of one organization.

    Attributes:
        chains: that of each STATE so far, None if its run and those before it counted nothing.
    """

    def __init__(self, events: Iterable[Expected]) -> None:
        self.chains: list[Chain | None] = [None]
        self._events = list(events)
        self._by_id = {event.id: event for event in self._events}
        self._times: dict[str, str] = {}

    def judge_run(self, run: PlayedRun, records: Sequence[CoverageRecord], *, is_on: bool) -> None:
        """Judge the records of a run, and remember what its STATEs cover.

        Raises:
            AssertionError: a promise was broken.
        """
        given = self.chains[-1]
        ids = [record["id"] for record in run.arrived]
        self._times |= {record["id"]: record["occurredAt"] for record in run.arrived}
        start = max(run.given.bookmark or EARLIEST, run.range_start)
        chain = given or Chain(start)
        is_new = run.range_end > chain.covered_from
        if not is_on:
            assert not records, "a record, although nobody wants one"
        elif run.ended is None:
            assert len(records) == is_new, f"{len(records)} records: {records}"
        assert len(records) <= 1, "several records of one run"
        for each in records:
            self._judge_record(run, each, chain)
        for number, (value, _, count) in enumerate(run.states):
            bookmark = Acknowledged(value).bookmark  # excluded events move it without a record
            if not is_on:
                self.chains.append(None if count else given)
            elif records and records[0].states <= number:
                digest = records[0].record["digest"]
                self.chains.append(Chain(run.range_end, frozenset(), digest))
            elif count or given or bookmark != run.given.bookmark:
                self.chains.append(chain.with_events(ids[:count]))
            else:
                self.chains.append(None)

    def _judge_record(self, run: PlayedRun, found: CoverageRecord, chain: Chain) -> None:
        record = found.record
        end = parse_instant(record["covered_until"])
        assert parse_instant(record["covered_from"]) == chain.covered_from, (
            f"covered_from is {record['covered_from']}, not {chain.covered_from}"
        )
        assert end == run.range_end, f"covered_until is {end}, not {run.range_end}"
        ids = {each["id"] for each in run.arrived[: found.arrived]}
        delivered = ids | run.given.covered
        owed = [
            event.id
            for event in self._events
            if chain.covered_from <= event.instant < end
            and run.wants(event)
            and event.id not in delivered
        ]
        assert not owed, f"a record covers what was not delivered: {owed}"
        counted = [self._by_id[each] for each in chain.pending | ids]
        assert record["events"] == len(counted), f"{record['events']} events, not {len(counted)}"
        late = sum(event.instant < chain.covered_from for event in counted)
        assert record["late_events"] == late, f"{record['late_events']} late events, not {late}"
        self._judge_texts(record, counted)
        assert record["previous_digest"] == chain.digest, "another previous_digest"

    def _judge_texts(self, record: Mapping[str, Any], counted: Sequence[Expected]) -> None:
        instants = sorted(event.instant for event in counted)
        for name, expected in (("first_event_at", instants[:1]), ("last_event_at", instants[-1:])):
            found = [parse_instant(text) for text in [record[name]] if text is not None]
            assert found == expected, f"{name} is {record[name]}"
        digest = sum(digest_number(event.id, self._text(event)) for event in counted) % 2**256
        assert int(record["digest"], 16) == digest, "the digest is not that of the events"

    def _text(self, event: Expected) -> bytes:
        """The delivered text: that of the service, with the time in UTC form."""
        sent = event.event | {"occurredAt": self._times[event.id]}
        return json.dumps(sent, separators=(",", ":"), ensure_ascii=False).encode()
