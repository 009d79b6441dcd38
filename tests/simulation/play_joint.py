"""Plays histories of several organizations; each of them is judged as if it were alone."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from logging import Logger
from typing import Any, cast
from unittest.mock import patch

from tap_audit_events.errors.exceptions import OrganizationsError
from tap_audit_events.events.instants import Instant, instant_of, whole_second
from tap_audit_events.run.tokens import OrganizationLogger
from tap_audit_events.singer.tap import TapAuditEvents
from tests.simulation.coverage_judge import CoverageJudge
from tests.simulation.histories import START
from tests.simulation.joint_histories import (
    JointHistory,
    JointNetwork,
    JointRun,
    JointWorld,
    Traffic,
    Trouble,
    draw_joint,
)
from tests.simulation.joint_target import JointTarget, as_single, owner_at_top, part_of
from tests.simulation.judge import Judge
from tests.simulation.network import Network
from tests.simulation.play import QUIET_RUNS, _drawn, _Run
from tests.simulation.played_run import Acknowledged, Expected, PlayedRun
from tests.simulation.simulated_workers import threads_joined
from tests.simulation.world import World, Writer


def play_joint(seed: int, *, uses_threads: bool = False) -> None:
    """Play the history of a seed.

    Raises:
        AssertionError: a promise was broken; the message names the seed.
    """
    joint = draw_joint(seed, uses_threads=uses_threads)
    try:
        with patch("backoff.full_jitter", partial(_drawn, joint.rng)):
            _Player(joint).play()
    except AssertionError as error:
        with_threads = " with threads" if uses_threads else ""
        raise AssertionError(f"seed {seed}{with_threads}: {error}") from error


class _Judged:
    """The judges of one organization, and what its newest STATE covers."""

    def __init__(self, joint: JointHistory, world: JointWorld, organization_id: str) -> None:
        history = joint.histories[organization_id]
        self.organization_id = organization_id
        self.judge = Judge(history, world.organizations[organization_id])
        self._ids = {each.event["id"] for each in history.happenings}
        self.coverage = CoverageJudge(map(Expected, history.happenings))

    @property
    def given(self) -> Acknowledged:
        acknowledged = self.judge.acknowledged
        return acknowledged[-1] if acknowledged else Acknowledged()

    def judge_run(self, run: JointRun, played: PlayedRun, target: JointTarget) -> None:
        own = self._own(run, played)
        strange = {record["id"] for record in own.arrived} - self._ids
        assert not strange, f"events of another organization: {sorted(strange)}"
        records = [
            replace(each, arrived=self._count(run, played.arrived[: each.arrived]))
            for each in target.coverage
            if each.record["organization_id"] == self.organization_id
        ]
        self.coverage.judge_run(own, records, is_on=run.has_coverage)
        self.judge.judge_run(own)

    def judge_left_alone(self, states: list[tuple[dict[str, Any], int, int]]) -> None:
        """Check that the bookmark of an organization that is not read does not change."""
        before = part_of_single(self.given)
        for value, _, _ in states:
            same = part_of(value, self.organization_id) == before
            assert same, f"the bookmark of {self.organization_id} changed, which is not read"

    def _own(self, run: JointRun, played: PlayedRun) -> PlayedRun:
        """The part of a run that belongs to this organization."""
        network = cast("JointNetwork", played.network)
        ended = played.ended
        if isinstance(ended, OrganizationsError):
            ended = ended.errors.get(self.organization_id)
        trouble = run.troubles.get(self.organization_id)
        states = [
            (as_single(part_of(value, self.organization_id)), length, self._count(run, before))
            for value, length, count in played.states
            for before in [played.arrived[:count]]
        ]
        traffic = network.traffic[self.organization_id]
        return replace(
            played,
            now=self._now(played, traffic),
            planned=replace(run.planned, fault_share=1.0 if _may_fail(trouble) else 0.0),
            given=self.given,
            network=cast("Network", traffic),
            arrived=[each for each in played.arrived if self._is_own(run, each)],
            states=states,
            ended=ended,
            warnings=[
                each.removeprefix(f"{self.organization_id}: ")
                for each in played.warnings
                if run.is_single or each.startswith(self.organization_id)
            ],
        )

    def _now(self, played: PlayedRun, traffic: Traffic) -> Instant:
        """When the organization was opened, which is also the end of its range."""
        if traffic.range_end is None:
            return played.now
        first_request = instant_of(START + timedelta(seconds=traffic.came_at))
        assert whole_second(played.now) <= traffic.range_end <= first_request, (
            f"the range ends at {traffic.range_end}"
        )
        return traffic.range_end

    def _count(self, run: JointRun, records: list[dict[str, Any]]) -> int:
        return sum(self._is_own(run, each) for each in records)

    def _is_own(self, run: JointRun, record: dict[str, Any]) -> bool:
        if run.is_single:
            assert "organization_id" not in record, "a record of one organization names it"
            return run.organizations == (self.organization_id,)
        return bool(record["organization_id"] == self.organization_id)


def part_of_single(acknowledged: Acknowledged) -> dict[str, Any]:
    """The bookmark in a STATE as `as_single` makes it."""
    part: dict[str, Any] = acknowledged.value.get("bookmarks", {}).get("audit_events", {})
    return part


def _may_fail(trouble: Trouble | None) -> bool:
    return trouble is not None


class _Player:
    def __init__(self, joint: JointHistory) -> None:
        self.joint = joint
        self.world = JointWorld(joint)
        self._target = JointTarget(commits_at_state=joint.any_history.commits_at_state)
        self._judged = {each: _Judged(joint, self.world, each) for each in joint.histories}
        self._state: dict[str, Any] = {}
        self._keeps_once = True

    def play(self) -> None:
        for run in self.joint.runs:
            self._run(run)
        last = self.joint.last_run
        played = self._run(last)
        assert played.ended is None, f"the last run failed: {played.ended}"
        for organization_id, judged in self._judged.items():
            ids = Counter(
                each["id"]
                for each in self._target.records
                if each.get("organization_id", each.get("_of")) == organization_id
            )
            judged.judge.judge_history(ids, keeps_once=self._keeps_once)
        for number in range(QUIET_RUNS):
            at = last.planned.at + 10 * number + 20
            quiet = self._run(replace(last, planned=replace(last.planned, at=at)))
            assert not quiet.arrived, "a quiet run delivered records"

    def _run(self, run: JointRun) -> PlayedRun:
        run = self._possible(run)
        self.world.pass_time(max(0.0, run.planned.at - self.world.seconds))
        given = Acknowledged(self._state)
        with threads_joined():
            played = _JointRun(self.world, self._target, run, given).run()
        kept = self._target.records[len(self._target.records) - len(played.arrived) :]
        for record in [*kept, *played.arrived] if run.is_single else []:
            record.setdefault("_of", run.organizations[0])
        if run.is_single:
            played = replace(
                played,
                arrived=[
                    {name: each for name, each in record.items() if name != "_of"}
                    for record in played.arrived
                ],
            )
        if played.ended is not None and not self.joint.any_history.commits_at_state:
            self._keeps_once = False
        for organization_id, judged in self._judged.items():
            if organization_id in run.organizations:
                judged.judge_run(run, played, self._target)
            else:
                judged.judge_left_alone(played.states)
        concurrency = run.planned.settings["concurrency"]
        at_once = played.network.most_in_flight
        assert at_once <= concurrency, "more requests in flight than concurrency"
        if played.states:
            self._state = played.states[-1][0]
        return played

    def _possible(self, run: JointRun) -> JointRun:
        """If the bookmark is another organization's, a run for one organization reads that one."""
        owner = owner_at_top(self._state)
        if not run.is_single or owner in (None, *run.organizations):
            return run
        return replace(run, organizations=(cast("str", owner),), troubles={})


class _JointRun(_Run):
    """One run of the tap for several organizations."""

    def __init__(
        self, world: JointWorld, target: JointTarget, run: JointRun, given: Acknowledged
    ) -> None:
        super().__init__(cast("World", world), target, run.planned, given)
        self._joint_world = world
        self._run = run
        self._network = JointNetwork(world, run, self._meet)

    @contextmanager
    def _heard(self, logger: Logger) -> Iterator[None]:
        def warning(adapter: OrganizationLogger, text: str, *values: object) -> None:
            self._warnings.append(f"{adapter._organization_id}: {text % values}")

        with super()._heard(logger), patch.object(OrganizationLogger, "warning", warning):
            yield

    def _tap(self) -> TapAuditEvents:
        run = self._run
        config: dict[str, Any] = {"base_url": "https://simulated.example", **run.planned.settings}
        tokens = self._joint_world.joint.tokens
        if run.is_single:
            (only,) = run.organizations
            config |= {"organization_id": only, "access_token": tokens[only]}
        else:
            config["organizations"] = [
                {"organization_id": each, "access_token": tokens[each]}
                for each in run.organizations
            ]
        return TapAuditEvents(
            config=config,
            state=json.loads(json.dumps(self._given.value)),
            catalog=_catalog(is_single=run.is_single) if run.has_coverage else None,
            message_writer=Writer(self._pipe, lambda: self._world.seconds, self._meet),
            runtime=self._runtime(),
        )


@cache
def _catalog(*, is_single: bool) -> dict[str, Any]:
    """A catalog that selects both streams."""
    config: dict[str, Any] = {} if is_single else {"organizations": [{}]}
    tap = TapAuditEvents(config=config, validate_config=False)
    catalog: dict[str, Any] = json.loads(json.dumps(tap.catalog_dict))
    for stream in catalog["streams"]:
        for each in stream["metadata"]:
            if not each["breadcrumb"]:
                each["metadata"]["selected"] = True
    return catalog
