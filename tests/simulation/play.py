"""Plays histories, and has each of their runs judged."""

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from logging import Logger
from unittest.mock import patch

from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.events.instants import instant_of
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.extraction import watermark
from tap_audit_events.extraction.planning import plan
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.extraction.workers import Fetch, RequestPlan, Workers
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.service.rate_limiter import RateLimiter, RunRequests
from tap_audit_events.singer.tap import TapAuditEvents
from tests.simulation.histories import Caps, History, PlannedRun, draw
from tests.simulation.judge import Judge
from tests.simulation.network import Network, new_session
from tests.simulation.played_run import Acknowledged, PlayedRun
from tests.simulation.simulated_workers import (
    InlineWorkers,
    SimulatedRateLimiter,
    ThreadedWorkers,
    threads_joined,
)
from tests.simulation.world import SIGTERM, KilledError, Pipe, Target, World, Writer

QUIET_RUNS = 2


def play(seed: int, *, uses_threads: bool = False) -> World:
    """Play the history of a seed; with threads it is not the same each time.

    Raises:
        AssertionError: a promise was broken; the message names the seed.
    """
    history = draw(seed, uses_threads=uses_threads)
    player = _Player(history)
    try:
        with _small_caps(history.caps), patch("backoff.full_jitter", partial(_drawn, history.rng)):
            player.play()
    except AssertionError as error:
        with_threads = " with threads" if uses_threads else ""
        raise AssertionError(f"seed {seed}{with_threads}: {error}") from error
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
        self._judge = Judge(history, self.world)
        self._keeps_once = True

    def play(self) -> None:
        for planned in self.history.runs:
            self._run(planned)
        last = self._run(self._last_run(0))
        assert last.ended is None, f"the last run failed: {last.ended}"
        self._judge.judge_history(self._target.ids, keeps_once=self._keeps_once)
        for number in range(QUIET_RUNS):
            quiet = self._run(self._last_run(10 * number + 20))
            assert quiet.ended is None, f"a quiet run failed: {quiet.ended}"
            assert not quiet.arrived, "a quiet run delivered records"

    def _last_run(self, seconds: float) -> PlannedRun:
        return PlannedRun(at=self.history.over_at + seconds, settings=self.history.settings)

    def _run(self, planned: PlannedRun) -> PlayedRun:
        self.world.pass_time(max(0.0, planned.at - self.world.seconds))
        with threads_joined():
            played = _Run(self.world, self._target, planned, self._given(planned)).run()
        if played.ended is not None and not self.history.commits_at_state:
            self._keeps_once = False
        self._judge.judge_run(played)
        return played

    def _given(self, planned: PlannedRun) -> Acknowledged:
        """The STATE that a run starts from."""
        acknowledged = self._judge.acknowledged
        if not acknowledged:
            return Acknowledged()
        back = min(planned.states_back, len(acknowledged) - 1)
        self._keeps_once = self._keeps_once and back == 0
        return acknowledged[-1 - back]


class _Run:
    """One run of the tap."""

    def __init__(
        self, world: World, target: Target, planned: PlannedRun, given: Acknowledged
    ) -> None:
        self._world = world
        self._target = target
        self._planned = planned
        self._given = given
        self._pipe = Pipe(target, world.random)
        self._network = Network(world, planned, self._meet)
        self._met = {"message": 0, "request": 0}
        self._limiters: list[SimulatedRateLimiter] = []
        self._stop = Stop()
        self._warnings: list[str] = []

    def run(self) -> PlayedRun:
        """Run the tap to its end."""
        started_at, now = self._world.seconds, self._now()
        self._target.begin()
        ended = self._end()
        self._network.is_over = True
        return PlayedRun(
            planned=self._planned,
            given=self._given,
            started_at=started_at,
            now=instant_of(now),
            network=self._network,
            arrived=self._target.arrived,
            states=self._target.states,
            last_kind=self._target.last_kind,
            ended=ended,
            ended_at=self._world.seconds,
            waited_seconds=sum(limiter.waited_seconds for limiter in self._limiters),
            warnings=self._warnings,
        )

    def _end(self) -> BaseException | None:
        """The error that ends the run early, None if it is complete."""
        try:
            tap = self._tap()
            with self._heard(tap.streams[STREAM].logger):
                tap.sync_all()
            self._stop.check()
        except (AuditEventsError, KilledError) as error:
            return error
        return None

    @contextmanager
    def _heard(self, logger: Logger) -> Iterator[None]:
        """Keep the warnings, even while logging is disabled."""
        real = logger.warning

        def warning(text: str, *values: object) -> None:
            self._warnings.append(text % values)
            real(text, *values)

        with patch.object(logger, "warning", warning):
            yield

    def _tap(self) -> TapAuditEvents:
        service = self._world.service
        return TapAuditEvents(
            config={
                "base_url": "https://simulated.example",
                "organization_id": service.organization_id,
                "access_token": service.access_token,
                **self._planned.settings,
            },
            state=json.loads(json.dumps(self._given.value)),
            message_writer=Writer(self._pipe, lambda: self._world.seconds, self._meet),
            runtime=self._runtime(),
        )

    def _runtime(self) -> Runtime:
        return Runtime(
            stop=self._stop,
            now=self._now,
            shuffle=self._world.random.shuffle,
            new_session=lambda _: new_session(self._network),
            new_rate_limiter=self._new_rate_limiter,
            new_workers=self._new_workers,
        )

    def _now(self) -> datetime:
        return self._world.now + timedelta(seconds=self._planned.skew)

    def _new_rate_limiter(self, run: RunRequests) -> RateLimiter:
        self._limiters.append(SimulatedRateLimiter(run, self._world))
        return self._limiters[-1]

    def _new_workers(self, requests: RequestPlan, fetch: Fetch, stop: Stop, count: int) -> Workers:
        kind = ThreadedWorkers if self._world.history.uses_threads else InlineWorkers
        return kind(requests, fetch, stop, count, self._world)

    def _meet(self, what: str) -> None:
        """Count a message or a request; the run may end at it."""
        self._met[what] += 1
        planned = self._planned
        counted = "request" if planned.at_request else "message"
        if what != counted or self._met[what] != planned.end_at:
            return
        if planned.end == "killed":
            self._pipe.die()
            raise KilledError
        if planned.end == "stopped":
            self._stop.request(SIGTERM)
        if planned.end == "pipe closed":
            self._pipe.closed_by_reader = True
