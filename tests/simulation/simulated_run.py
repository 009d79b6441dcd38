"""One run of the tap in a simulated world."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from logging import Logger
from typing import Any
from unittest.mock import patch

from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.events.instants import Instant, instant_of
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.extraction.workers import Fetch, RequestPlan, Workers
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.run.tokens import OrganizationLogger
from tap_audit_events.service.rate_limiter import RateLimiter, RequestCounts
from tap_audit_events.singer.tap import TapAuditEvents
from tests.simulation.histories import PlannedRun
from tests.simulation.network import Network
from tests.simulation.simulated_workers import (
    InlineWorkers,
    SimulatedRateLimiter,
    ThreadedWorkers,
)
from tests.simulation.world import SIGTERM, KilledError, Pipe, Target, World, Writer


@dataclass(frozen=True)
class EndedRun:
    """A run after its end.

    Attributes:
        planned: how it was set up.
        started_at: seconds after the start of the history.
        now: the tap's own clock at that time.
        target: with what arrived.
        ended: what ended it early, None if it was complete.
        warnings: the warnings that it logged, with the organization if there are several.
    """

    planned: PlannedRun
    started_at: float
    now: Instant
    network: Network
    target: Target
    ended: BaseException | None
    ended_at: float
    waited_seconds: float
    warnings: list[str]


class SimulatedRun:
    """One run of the tap."""

    def __init__(
        self, world: World, target: Target, planned: PlannedRun, state: dict[str, Any]
    ) -> None:
        self._world = world
        self._target = target
        self._planned = planned
        self._state = state
        self._pipe = Pipe(target, world.random)
        self._network = Network(world, planned, self._meet)
        self._met = {"message": 0, "request": 0}
        self._limiters: list[SimulatedRateLimiter] = []
        self._stop = Stop()
        self._warnings: list[str] = []

    def run(self) -> EndedRun:
        """Run the tap to its end."""
        started_at, now = self._world.seconds, self._now()
        planned = self._planned
        self._target.begin(planned.organizations[0] if planned.is_single else None)
        ended = self._end()
        self._network.is_over = True
        return EndedRun(
            planned=planned,
            started_at=started_at,
            now=instant_of(now),
            network=self._network,
            target=self._target,
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

        def of_one(adapter: OrganizationLogger, text: str, *values: object) -> None:
            self._warnings.append(f"{adapter._organization_id}: {text % values}")

        with (
            patch.object(logger, "warning", warning),
            patch.object(OrganizationLogger, "warning", of_one),
        ):
            yield

    def _tap(self) -> TapAuditEvents:
        planned, tokens = self._planned, self._world.history.tokens
        config: dict[str, Any] = {"base_url": "https://simulated.example", **planned.settings}
        items = [
            {"organization_id": each, "access_token": tokens[each]}
            for each in planned.organizations
        ]
        config |= items[0] if planned.is_single else {"organizations": items}
        return TapAuditEvents(
            config=config,
            state=json.loads(json.dumps(self._state)),
            catalog=_catalog(is_single=planned.is_single) if planned.has_coverage else None,
            message_writer=Writer(self._pipe, lambda: self._world.seconds, self._meet),
            runtime=self._runtime(),
        )

    def _runtime(self) -> Runtime:
        return Runtime(
            stop=self._stop,
            now=self._now,
            shuffle=self._world.random.shuffle,
            new_adapter=lambda _: self._network,
            new_rate_limiter=self._new_rate_limiter,
            new_workers=self._new_workers,
        )

    def _now(self) -> datetime:
        return self._world.now + timedelta(seconds=self._planned.skew)

    def _new_rate_limiter(self, run: RequestCounts) -> RateLimiter:
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
