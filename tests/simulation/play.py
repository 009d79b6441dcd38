"""Plays histories, and has each of their runs judged for each organization."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from unittest.mock import patch

from tap_audit_events.errors.exceptions import OrganizationsError
from tap_audit_events.events.instants import Instant, instant_of, whole_second
from tap_audit_events.extraction import watermark
from tap_audit_events.extraction.planning import plan
from tests.simulation.coverage_judge import CoverageJudge
from tests.simulation.histories import START, Caps, History, PlannedRun, draw
from tests.simulation.judge import Judge
from tests.simulation.network import Traffic
from tests.simulation.played_run import Acknowledged, Expected, PlayedRun
from tests.simulation.simulated_run import EndedRun, SimulatedRun
from tests.simulation.simulated_workers import threads_joined
from tests.simulation.states import as_single, owner_at_top, part_of
from tests.simulation.world import Target, World

QUIET_RUNS = 2


def play(seed: int, *, is_joint: bool = False, uses_threads: bool = False) -> World:
    """Play the history of a seed; with threads it is not the same each time.

    Raises:
        AssertionError: a promise was broken; the message names the seed.
    """
    history = draw(seed, is_joint=is_joint, uses_threads=uses_threads)
    player = _Player(history)
    try:
        with _small_caps(history.caps), patch("backoff.full_jitter", partial(_drawn, history.rng)):
            player.play()
    except AssertionError as error:
        kind = " joint" * is_joint + " with threads" * uses_threads
        raise AssertionError(f"seed {seed}{kind}: {error}") from error
    return player.world


def _drawn(rng: random.Random, seconds: float) -> float:
    """A wait before a retry that is drawn from the seed; the real one differs each time."""
    return rng.uniform(0, seconds)


@contextmanager
def _small_caps(caps: Caps | None) -> Iterator[None]:
    if caps is None:
        yield
        return
    with ExitStack() as stack:
        for owner, name, value in (
            (watermark, "MAX_REMEMBERED_IDS", caps.memory),
            (watermark, "IDS_HELD_BEFORE_LOOKBACK", caps.memory_before),
            (watermark, "_GROUPS", caps.groups),
            (plan, "PAGES_HELD", caps.pages_held),
        ):
            stack.enter_context(patch.object(owner, name, value))
        yield


class _Player:
    def __init__(self, history: History) -> None:
        self.history = history
        self.world = World(history)
        self._target = Target(commits_at_state=history.commits_at_state)
        self._judged = {each: _Judged(self.world, each) for each in history.happenings}
        self._states: list[dict[str, Any]] = []
        self._keeps_once = True

    def play(self) -> None:
        for planned in self.history.runs:
            self._run(planned)
        last = self._run(self.history.last_run())
        assert last.ended is None, f"the last run failed: {last.ended}"
        for organization_id, judged in self._judged.items():
            ids = self._target.ids(organization_id)
            judged.judge.judge_history(ids, keeps_once=self._keeps_once)
        for number in range(QUIET_RUNS):
            quiet = self._run(self.history.last_run(10 * number + 20))
            assert quiet.ended is None, f"a quiet run failed: {quiet.ended}"
            assert not self._target.arrived, "a quiet run delivered records"

    def _run(self, planned: PlannedRun) -> EndedRun:
        self.world.pass_time(max(0.0, planned.at - self.world.seconds))
        back = min(planned.states_back, max(0, len(self._states) - 1))
        self._keeps_once = self._keeps_once and back == 0
        state = self._states[-1 - back] if self._states else {}
        planned = _possible(planned, state)
        with threads_joined():
            run = SimulatedRun(self.world, self._target, planned, state).run()
        if run.ended is not None and not self.history.commits_at_state:
            self._keeps_once = False
        concurrency = planned.settings["concurrency"]
        at_once = run.network.most_in_flight
        assert at_once <= concurrency, "more requests in flight than concurrency"
        for judged in self._judged.values():
            judged.judge_run(run, back)
        self._states += [value for value, _, _ in self._target.states]
        return run


def _possible(run: PlannedRun, state: dict[str, Any]) -> PlannedRun:
    """If the bookmark is another organization's, a run for one organization reads that one."""
    owner = owner_at_top(state)
    if not run.is_single or owner is None or owner in run.organizations:
        return run
    return replace(run, organizations=(owner,), troubles={})


class _Judged:
    """The judges of one organization."""

    def __init__(self, world: World, organization_id: str) -> None:
        organization = world.organizations[organization_id]
        self.judge = Judge(world.history, organization)
        self._is_joint = world.history.is_joint
        self._id = organization_id
        self._ids = {each.event["id"] for each in organization.happenings}
        self._coverage = CoverageJudge(map(Expected, organization.happenings))

    def judge_run(self, run: EndedRun, back: int) -> None:
        acknowledged = self.judge.acknowledged
        given = acknowledged[-1 - back] if acknowledged else Acknowledged()
        if self._id not in run.planned.organizations:
            for value, _, _ in run.target.states:
                same = as_single(part_of(value, self._id)) == given.value
                assert same, f"the bookmark of {self._id} changed, which is not read"
            return
        own = self._own(run, given)
        strange = {record["id"] for record in own.arrived} - self._ids
        assert not strange, f"events of another organization: {sorted(strange)}"
        records = [
            replace(each, arrived=self._count(run, each.arrived))
            for each in run.target.coverage
            if each.record["organization_id"] == self._id
        ]
        if self._is_joint:
            self._coverage.judge_run(own, records, is_on=run.planned.has_coverage)
        self.judge.judge_run(own)

    def _own(self, run: EndedRun, given: Acknowledged) -> PlayedRun:
        """The part of a run that belongs to this organization."""
        planned, target, ended = run.planned, run.target, run.ended
        if isinstance(ended, OrganizationsError):
            ended = ended.errors.get(self._id)
        traffic = run.network.traffic[self._id]
        return PlayedRun(
            planned=replace(planned, fault_share=1.0) if self._id in planned.troubles else planned,
            given=given,
            started_at=run.started_at,
            now=self._now(run, traffic),
            traffic=traffic,
            arrived=[each for each in target.arrived if self._is_own(run, each)],
            states=[
                (as_single(part_of(value, self._id)), length, self._count(run, count))
                for value, length, count in target.states
            ],
            last_kind=target.last_kind,
            ended=ended,
            ended_at=run.ended_at,
            waited_seconds=run.waited_seconds,
            warnings=[
                each.removeprefix(f"{self._id}: ")
                for each in run.warnings
                if planned.is_single or each.startswith(self._id)
            ],
        )

    def _now(self, run: EndedRun, traffic: Traffic) -> Instant:
        """When the organization was opened, which is also the end of its range."""
        if not self._is_joint or traffic.range_end is None:
            return run.now
        first_request = instant_of(START + timedelta(seconds=traffic.came_at))
        assert whole_second(run.now) <= traffic.range_end <= first_request, (
            f"the range ends at {traffic.range_end}"
        )
        return traffic.range_end

    def _count(self, run: EndedRun, arrived: int) -> int:
        """How many of the first records are of this organization."""
        return sum(self._is_own(run, each) for each in run.target.arrived[:arrived])

    def _is_own(self, run: EndedRun, record: dict[str, Any]) -> bool:
        if run.planned.is_single:
            assert "organization_id" not in record, "a record of one organization names it"
            return True
        return bool(record["organization_id"] == self._id)
