"""What must hold of each run, of each of its STATEs, and at the end of a history.

Everything is judged from outside: by the events that the service showed, the settings and the data
that arrived at the target. A run that failed or was killed is no excuse: a STATE covers the
records that arrived before it, and the run that starts from it has to deliver the others.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

from tap_audit_events.errors.exceptions import ContractError, OutputError
from tap_audit_events.events.instants import (
    EARLIEST,
    Instant,
    later,
    next_whole_second,
    parse_instant,
    whole_second,
)
from tests.simulation.histories import (
    EARLY_RETRY_AFTER_SECONDS,
    Caps,
    History,
)
from tests.simulation.played_run import Acknowledged, Expected, PlayedRun
from tests.simulation.world import KilledError, Organization

SMALL_STATE_BYTES = 4096


class Judge:
    """Judges what the runs of a history do for one organization, and then all of them.

    Attributes:
        acknowledged: every STATE so far.
    """

    def __init__(self, history: History, organization: Organization) -> None:
        self.acknowledged: list[Acknowledged] = []
        self._forgotten: set[str] = set()
        self._history = history
        self._organization = organization
        events = map(Expected, organization.happenings)
        self._events = sorted(events, key=lambda each: each.instant)
        self._by_id = {event.id: event for event in self._events}
        self._page_size: int = min(
            max(run.settings["page_size"] for run in history.runs), len(self._events)
        )

    def judge_run(self, run: PlayedRun) -> None:
        """Judge a run, and remember its STATEs.

        Raises:
            AssertionError: a promise was broken.
        """
        self._judge_once(run)
        self._judge_faithful(run)
        owed = [event for event in self._events if run.owes(event)]
        acknowledged = self._acknowledged(run)
        self._judge_states(run, acknowledged, owed)
        self._judge_end(run)
        self._judge_requests(run)
        self._judge_warnings(run)
        if run.ended is None:
            self._judge_complete(run, acknowledged, owed)
        self.acknowledged += acknowledged

    def judge_history(self, ids: Counter[str], *, keeps_once: bool) -> None:
        """Judge the records that the target has in the end.

        An event may be missing only if it lies before the range of the last run. How it came to lie
        there was judged with each STATE.

        Args:
            ids: how often the target has each event.
            keeps_once: whether the target keeps nothing that its STATE does not cover.

        Raises:
            AssertionError: a promise was broken.
        """
        if self._history.is_steady:
            excluded = self._history.settings.get("exclude_action_types", ())
            due = {event.id for event in self._events if event.type not in excluded}
            missing = due - ids.keys()
            assert not missing, f"missing at the end: {sorted(missing)}"
        repeated = {each for each, count in ids.items() if count > 1} - self._forgotten
        assert not (repeated and keeps_once), f"repeated: {repeated}"
        violations = self._organization.service.violations
        assert not violations, f"outside of the interface: {violations[:3]}"

    def _acknowledged(self, run: PlayedRun) -> list[Acknowledged]:
        """The STATEs of a run, each with the records that it covers."""
        ids = [record["id"] for record in run.arrived]
        found = []
        for value, _, count in run.states:
            covered = run.given.covered.union(ids[:count])
            forgotten = run.given.forgotten.difference(ids[:count])
            forgotten |= self._ahead(Acknowledged(value, covered))
            late, types = run.given.late, run.given.types
            bookmark = Acknowledged(value).bookmark
            if bookmark is not None and bookmark != run.given.bookmark:
                passed = self._events_of(EARLIEST, bookmark)
                late = late.union(e.id for e in passed if e.visible_at > run.started_at)
                known = [each for each in (types, run.types) if each is not None]
                types = frozenset.intersection(*known) if known else None
            found.append(Acknowledged(value, covered, forgotten, late, types))
        return found

    def _events_of(self, start: Instant, until: Instant) -> Sequence[Expected]:
        """The events of a range, without those at its end."""
        first, last = (
            bisect_left(self._events, bound, key=lambda each: each.instant)
            for bound in (start, until)
        )
        return self._events[first:last]

    def _ahead(self, acknowledged: Acknowledged) -> set[str]:
        """The delivered events after the bookmark, if there are too many to remember."""
        bookmark, caps = acknowledged.bookmark, self._history.caps
        if bookmark is None or caps is None:
            return set()
        ahead = {each for each in acknowledged.covered if self._by_id[each].instant > bookmark}
        return ahead if len(ahead) + self._slack(caps) > caps.memory else set()

    # Records

    def _judge_once(self, run: PlayedRun) -> None:
        """No event arrives twice in one run, or if the STATE of the run covers it."""
        ids = [record["id"] for record in run.arrived]
        repeated = {event_id: count for event_id, count in Counter(ids).items() if count > 1}
        assert not repeated, f"repeated within a run: {repeated}"
        again = run.given.covered.intersection(ids)
        self._forgotten |= again & run.given.forgotten
        again -= run.given.forgotten
        assert not again, f"delivered although the STATE covers them: {sorted(again)}"

    def _judge_faithful(self, run: PlayedRun) -> None:
        """Events arrive unchanged, with their time in UTC form, and only if they were requested."""
        for record in run.arrived:
            event = self._by_id[record["id"]]
            time = record["occurredAt"]
            assert time.endswith("Z"), f"not in UTC form: {time}"
            assert parse_instant(time) == event.instant, f"another time: {time}"
            same = record.items() >= (event.event | {"occurredAt": time}).items()
            assert same, f"changed: {record}"
            assert run.delivers(event), f"its type was not requested, or excluded: {record}"
            in_range = run.range_start <= event.instant <= run.range_end
            assert in_range, f"outside of the range of the run: {record}"

    def _judge_complete(
        self, run: PlayedRun, acknowledged: Sequence[Acknowledged], owed: Sequence[Expected]
    ) -> None:
        """A run that claims success has delivered all events that it owes, as its bookmark says."""
        ids = {record["id"] for record in run.arrived}
        lost = [e.id for e in owed if e.id not in ids and e.id not in run.given.covered]
        assert not lost, f"a run that claims success lost: {lost}"
        if not acknowledged or run.range_end < run.range_start:
            return
        last = acknowledged[-1]
        instants = [self._by_id[event_id].instant for event_id in last.covered]
        until = [instant for instant in instants if instant <= run.range_end]
        passed = [event for event in self._events if run.passes(event)]
        until += [event.instant for event in passed if event.visible_at <= run.started_at]
        newest = max(filter(None, [*until, run.given.bookmark]), default=None)
        # An excluded event that became visible meanwhile may have been read.
        allowed = {
            newest,
            *(each.instant for each in passed if each.instant > (newest or EARLIEST)),
        }
        assert last.bookmark in allowed, f"the bookmark is {last.bookmark}, not in {allowed}"

    # STATE

    def _judge_states(
        self, run: PlayedRun, acknowledged: Sequence[Acknowledged], owed: Sequence[Expected]
    ) -> None:
        before = run.given
        arrived_before, length_before = 0, 0
        for each, (_, length, count) in zip(acknowledged, run.states, strict=True):
            moved_back = (before.bookmark or EARLIEST) > (each.bookmark or EARLIEST)
            assert not moved_back, "the bookmark moved back"
            is_final = run.ended is None and each is acknowledged[-1]
            self._judge_passed(run, each, owed, is_final=is_final)
            self._judge_memory(run, each)
            self._judge_covered(run, each)
            if length_before < SMALL_STATE_BYTES:
                records = count - arrived_before
                assert records <= run.most_without_state, f"{records} records without a STATE"
            before, arrived_before, length_before = each, count, length

    def _judge_passed(
        self,
        run: PlayedRun,
        acknowledged: Acknowledged,
        owed: Sequence[Expected],
        *,
        is_final: bool,
    ) -> None:
        """The bookmark passes no event that the run owes and has not delivered.

        One exception: an event that is too late in every response counts as late until the run is
        complete.
        """
        bookmark = acknowledged.bookmark
        if bookmark is None or bookmark == run.given.bookmark:
            return
        passed = owed[: bisect_left(owed, bookmark, key=lambda each: each.instant)]
        lost = [event.id for event in passed if event.id not in acknowledged.covered]
        if not is_final and self._organization.displaced_id in lost:
            lost.remove(self._organization.displaced_id)
        assert not lost, f"the bookmark {bookmark} passes: {lost}"

    def _judge_covered(self, run: PlayedRun, acknowledged: Acknowledged) -> None:
        """Everything from `covered_from` up to the bookmark was read, with any settings.

        Events that are missing there were late, or have a type that a run did not request.
        """
        bookmark, covered_from = acknowledged.bookmark, acknowledged.covered_from
        if bookmark is None or bookmark == run.given.bookmark:
            assert covered_from == run.given.covered_from, "what was read changed without an event"
            return
        if bookmark == EARLIEST:
            return
        assert covered_from is not None, "a STATE does not know from when on events were read"
        allowed = (run.given.covered_from, run.start_date)
        assert covered_from in allowed, f"events are said to be read from {covered_from} on"
        types, late = acknowledged.types, acknowledged.late
        lost = [
            event.id
            for event in self._events_of(covered_from, bookmark)
            if event.id not in acknowledged.covered
            and event.id not in late
            and event.id != self._organization.displaced_id
            and (types is None or event.type in types)
        ]
        assert not lost, f"a STATE says that everything was read, but not: {lost}"

    def _judge_memory(self, run: PlayedRun, acknowledged: Acknowledged) -> None:
        """STATE holds the ids of the lookback, as far as the memory goes, and no others."""
        bookmark, ids_from = acknowledged.bookmark, acknowledged.ids_from
        if bookmark is None:
            return
        assert ids_from <= bookmark, "the next run would start after the bookmark"
        caps = self._history.caps or Caps(100_000, 5000, 256, 12)
        covered = [self._by_id[event_id].instant for event_id in acknowledged.covered]
        counts = Counter(covered)
        most = caps.memory + counts[bookmark]
        assert acknowledged.id_count <= most, f"{acknowledged.id_count} ids in a STATE"
        remembered = sum(instant >= ids_from for instant in covered)
        group_size = -(-min(len(covered), caps.memory) // caps.groups)
        expired = acknowledged.id_count - remembered - group_size
        assert expired <= 0, f"{expired} ids in a STATE have left the lookback"
        lookback = later(bookmark, seconds=-max(1, run.lookback_seconds))
        complete_from = max(whole_second(lookback), run.given.ids_from)
        if ids_from <= complete_from:
            return
        ties = counts[max((each for each in covered if each < ids_from), default=EARLIEST)]
        # While events come out of order, the ids of the bookmark before them are kept first.
        kept = counts[run.given.bookmark] if run.given.bookmark else 0
        enough = remembered + ties + kept + self._slack(caps) > caps.memory
        assert enough, f"only {remembered} of {len(covered)} ids are remembered"

    def _slack(self, caps: Caps) -> int:
        """Ids that may be forgotten early, as they are forgotten in groups and pages."""
        return 3 * -(-caps.memory // caps.groups) + self._page_size + 2

    # Warnings about events that a run leaves out

    def _judge_warnings(self, run: PlayedRun) -> None:
        """A run warns of each event that it wants but cannot deliver, unless the event is late.

        Each such event lies before the range of the run and was not delivered before.
        """
        has_begun = run.ended is None or run.traffic.count > 0
        if run.given.bookmark in (None, EARLIEST) or not has_begun:
            return
        for event in self._events_of(EARLIEST, run.range_start):
            if run.wants(event) and event.id not in run.given.covered:
                self._judge_warning(run, event)

    def _judge_warning(self, run: PlayedRun, event: Expected) -> None:
        given, at = run.given, event.instant
        if at < run.start_date:
            if at > (given.bookmark or EARLIEST):
                assert run.has_warned("start_date lies after the bookmark"), f"silent of {event.id}"
        elif at < (given.covered_from or EARLIEST):
            which = ("Events before", "Events between")[run.start_date > EARLIEST]
            assert run.has_warned(which), f"silent of {event.id}, which lies before the start"
        elif given.last_types and event.type not in given.last_types:
            assert run.has_warned("action_types was widened"), f"silent of {event.id}, of a type"
        elif event.type in given.last_excluded:
            assert run.has_warned("exclude_action_types was narrowed"), f"silent of {event.id}"
        elif at >= run.lookback_start:
            is_second = given.ids_from <= later(run.lookback_start, seconds=1)
            has_warned = run.has_warned("Late events are read only from")
            assert is_second or has_warned, f"silent of {event.id}, which no ids cover"
        elif given.types is None or event.type in given.types:
            is_late = event.id in given.late or event.id == self._organization.displaced_id
            assert is_late, f"lost without a word: {event.id}"

    # How a run ended

    def _judge_end(self, run: PlayedRun) -> None:
        planned, ended = run.planned, run.ended
        is_sound = planned.end is None and planned.fault_share == 0
        may_fail = (
            self._history.cursor_lifetime is not None
            or run.traffic.cursors_ignored > 0
            or planned.early_429 > planned.settings["max_retries"]
        )
        if is_sound and not may_fail:
            assert ended is None, f"a run failed: {ended}"
        if is_sound and run.traffic.cursors_ignored:
            assert ended is not None, "cursors were ignored, and nobody noticed"
            if self._history.cursor_lifetime is None:
                assert isinstance(ended, ContractError), f"an error of another kind: {ended}"
        if not isinstance(ended, KilledError | OutputError):
            assert run.last_kind == "STATE", "STATE is not the last line"

    def _judge_requests(self, run: PlayedRun) -> None:
        """A run is polite, and a sound one needs few more requests than a sequential one."""
        planned, traffic = run.planned, run.traffic
        concurrency: int = planned.settings["concurrency"]
        # Simulated time stands still while real threads pass a 429 on.
        patience = max(2, concurrency) * (3 if self._history.uses_threads else 1)
        assert traffic.impatient < patience, "requests came during the wait of a 429"
        is_sound = run.ended is None and planned.fault_share == 0
        if not is_sound or self._history.cursor_lifetime is not None:
            return
        if planned.early_429:
            waited = planned.early_429 * EARLY_RETRY_AFTER_SECONDS
            assert run.waited_seconds <= waited * 1.2 + 1, f"waited {run.waited_seconds} s"
        if self._history.displaced_places is not None:
            return  # many events may then share the second at which a window is cut
        pages = -(-self._selected(run) // planned.settings["page_size"])
        most = 1.25 * max(1, pages) + 6 + planned.early_429 + self._pages_of_ties(run)
        assert traffic.count <= most, f"{traffic.count} requests for {pages} pages"

    def _pages_of_ties(self, run: PlayedRun) -> float:
        """Pages of the events of one instant: two windows that are cut there request them."""
        ties = Counter(expected.instant for expected in self._events).most_common(1)
        page_size: int = run.planned.settings["page_size"]
        return 2 * ((ties[0][1] if ties else 1) - 1) / page_size

    def _selected(self, run: PlayedRun) -> int:
        """The events that one request for the whole range would select at the end of the run."""
        start, end = whole_second(run.range_start), next_whole_second(run.range_end)
        events: Iterable[Expected] = filter(run.requests, self._events)
        return sum(e.visible_at <= run.ended_at and start <= e.instant <= end for e in events)
