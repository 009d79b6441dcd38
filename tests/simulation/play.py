"""Plays histories and judges them: complete, once, monotone, within the interface."""

import json
from typing import Any

from tap_audit_events.errors.exceptions import AuditEventsError, OutputError
from tap_audit_events.events.instants import Instant, instant_of, parse_instant, whole_second
from tests.simulation.histories import History, PlannedRun, draw
from tests.simulation.world import (
    SIGTERM,
    KilledError,
    Network,
    Pipe,
    SimulatedTap,
    Target,
    World,
    Writer,
)

QUIET_RUNS = 2


def play(seed: int) -> History:
    """Play the history of a seed.

    Raises:
        AssertionError: a promise was broken; the message names the seed.
    """
    history = draw(seed)
    try:
        _Player(history).play()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    return history


class _Player:
    def __init__(self, history: History) -> None:
        self.history = history
        self.world = World(history.happenings, history.cursor_lifetime, history.rng)
        self.target = Target(commits_at_state=history.commits_at_state)
        self.crashes = 0

    def play(self) -> None:
        for planned in self.history.runs:
            self._run_at(planned)
        self._run_at(PlannedRun(at=self.history.over_at))
        self._judge_completeness()
        for number in range(QUIET_RUNS):
            before = len(self.target.records)
            self._run_at(PlannedRun(at=self.history.over_at + 10 * number + 20))
            assert len(self.target.records) == before, "a quiet run emitted records"
        self._judge_states()
        assert self.world.service.violations == []

    def _run_at(self, planned: PlannedRun) -> None:
        self.world.pass_time(max(0.0, planned.at - self.world.seconds))
        to_be_delivered = self._visible_now()
        run = _Run(self.world, self.target, planned, self.history.settings)
        ended = run.run()
        if planned.end is None and planned.fault_share == 0:
            assert ended is None or self.history.cursor_lifetime, f"a run failed: {ended}"
        if ended is None:
            lost = to_be_delivered - self.target.ids.keys()
            assert not lost, f"a run that claims success lost: {sorted(lost)}"
        else:
            self.crashes += 1
        if not isinstance(ended, KilledError | OutputError):
            assert self.target.last_kind == "STATE", "STATE is not the last line"

    def _visible_now(self) -> set[str]:
        """The events that a run which starts now has to deliver, or a run before it."""
        now = whole_second(instant_of(self.world.now))
        return {
            happening.event["id"]
            for happening in self.history.happenings
            if happening.visible_at <= self.world.seconds
            and parse_instant(happening.event["occurredAt"]) <= now
        }

    def _judge_completeness(self) -> None:
        expected = {happening.event["id"] for happening in self.history.happenings}
        ids = self.target.ids
        assert ids.keys() >= expected, f"lost: {sorted(expected - ids.keys())}"
        repeated = {event_id: count for event_id, count in ids.items() if count > 1}
        if not self.crashes or self.history.commits_at_state:
            assert not repeated, f"repeated: {repeated}"

    def _judge_states(self) -> None:
        bookmarks = _bookmarks(self.target.states)
        assert bookmarks == sorted(bookmarks), "a bookmark moved back"


class _Run:
    """One run of the tap, from the state that the target acknowledged last."""

    def __init__(
        self, world: World, target: Target, planned: PlannedRun, settings: dict[str, Any]
    ) -> None:
        self.world = world
        self.planned = planned
        self.pipe = Pipe(target, world.random)
        self.met = {"message": 0, "request": 0}
        target.begin()
        self.tap = self._tap(target.state, settings)

    def run(self) -> BaseException | None:
        """Run it; what ended it early comes back, None where it was complete."""
        try:
            self.tap.sync_all()
            self.tap.stop.check()
        except (AuditEventsError, KilledError) as error:
            return error
        return None

    def _tap(self, state: dict[str, Any], settings: dict[str, Any]) -> SimulatedTap:
        service = self.world.service
        tap = SimulatedTap(
            config={
                "base_url": "https://simulated.example",
                "organization_id": service.organization_id,
                "access_token": service.access_token,
                **settings,
            },
            state=json.loads(json.dumps(state)),
            message_writer=Writer(self.pipe, lambda: self.world.seconds, self._meet),
        )
        tap.world = self.world
        tap.network = Network(self.world, self.planned, self._meet)
        return tap

    def _meet(self, what: str) -> None:
        """A message or a request is under way: the run may meet its end here."""
        self.met[what] += 1
        planned = self.planned
        counted = "request" if planned.at_request else "message"
        if what != counted or self.met[what] != planned.end_at:
            return
        if planned.end == "killed":
            self.pipe.die()
            raise KilledError
        if planned.end == "stopped":
            self.tap.stop.ask(SIGTERM)
        if planned.end == "pipe closed":
            self.pipe.closed_by_reader = True


def _bookmarks(states: list[dict[str, Any]]) -> list[Instant]:
    """The bookmarks of those states that have one."""
    entries = [state.get("bookmarks", {}).get("audit_events", {}) for state in states]
    values = [entry.get("replication_key_value") for entry in entries]
    return [parse_instant(value) for value in values if value is not None]
