"""A history of several organizations, drawn from a seed, and the services that they have."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlsplit

import requests

from tap_audit_events.events.instants import Instant, parse_instant
from tap_audit_events.sandbox import Fault, Service
from tests.builders import a_response, an_event
from tests.simulation.histories import (
    BATCHES,
    ENDS,
    SPAN_SECONDS,
    START,
    Happening,
    History,
    PlannedRun,
)
from tests.simulation.network import Network
from tests.simulation.world import World

FAULTS: Final = ("401", "403", "404", "500", "429", "cursor", "early 429")
RETRY_AFTER_SECONDS: Final = 3


@dataclass(frozen=True)
class Trouble:
    """What goes wrong with one organization in one run.

    Attributes:
        kind: one of `FAULTS`.
        after: how many of its requests succeed before that.
    """

    kind: str
    after: int


@dataclass(frozen=True)
class JointRun:
    """When a run starts, what it reads, and what happens to it.

    Attributes:
        planned: as for one organization.
        organizations: the ids that it reads.
        is_single: whether the only one is configured as ``organization_id``.
        has_coverage: whether the catalog selects the coverage records.
        troubles: what goes wrong, by organization.
    """

    planned: PlannedRun
    organizations: tuple[str, ...]
    is_single: bool
    has_coverage: bool
    troubles: dict[str, Trouble]


@dataclass(frozen=True)
class JointHistory:
    """Everything that a seed decides.

    Attributes:
        histories: the history of each organization, all of them with the same runs.
        tokens: the token of each organization.
        has_coverage: whether the last runs write coverage records.
    """

    seed: int
    histories: dict[str, History]
    tokens: dict[str, str]
    runs: list[JointRun]
    has_coverage: bool
    rng: random.Random = field(repr=False)

    @property
    def any_history(self) -> History:
        return next(iter(self.histories.values()))

    @property
    def last_run(self) -> JointRun:
        """A run that reads all organizations to their end."""
        at = max(history.over_at for history in self.histories.values())
        planned = PlannedRun(at=at, settings=self.any_history.settings)
        return JointRun(
            planned,
            tuple(self.histories),
            is_single=False,
            has_coverage=self.has_coverage,
            troubles={},
        )


def draw_joint(seed: int, *, uses_threads: bool = False) -> JointHistory:
    """The histories of a seed. All organizations use the same ids for their events."""
    rng = random.Random(f"joint {seed}")
    ids = [f"{n:08x}-0000-4000-8000-000000000000" for n in range(rng.randint(2, 6))]
    settings = _settings(rng)
    has_coverage = rng.random() < 0.6
    runs = [
        _run(rng, at, settings, ids, has_coverage=has_coverage)
        for at in sorted(rng.uniform(0, SPAN_SECONDS) for _ in range(rng.randint(1, 6)))
    ]
    shared: dict[str, Any] = {
        "seed": seed,
        "settings": settings,
        "runs": [run.planned for run in runs],
        "cursor_lifetime": None,
        "commits_at_state": rng.random() < 0.5,
        "caps": None,
        "displaced_places": None,
        "most_in_flight": rng.choice([1, 2, 4, 100]),
        "uses_threads": uses_threads,
        "rng": rng,
    }
    histories = {
        each: History(happenings=_happenings(rng, settings["lookback_seconds"]), **shared)
        for each in ids
    }
    tokens = [f"acme_pat_token-{n}" for n in range(rng.randint(1, 3))]
    owners = {each: rng.choice(tokens) for each in ids}
    return JointHistory(seed, histories, owners, runs, has_coverage, rng)


def _settings(rng: random.Random) -> dict[str, Any]:
    lane: dict[str, Any] = rng.choice([{}, {"stream_maps": {"audit_events": {"also": "id"}}}])
    batches: dict[str, Any] = {}
    if rng.random() < 0.2:
        encoding = {"format": "jsonl", "compression": rng.choice(["gzip", "none"])}
        batch_size = rng.choice([1, 3, 10_000])
        batches = {"encoding": encoding, "storage": {"root": BATCHES}, "batch_size": batch_size}
    return (
        lane
        | ({"batch_config": batches} if batches else {})
        | {
            "page_size": rng.choice([1, 2, 3, 5, 1000]),
            "lookback_seconds": rng.choice([0, 3, 60, 300]),
            "concurrency": rng.choice([1, 2, 4, 8]),
            "max_retries": 2,
        }
    )


def _run(
    rng: random.Random, at: float, settings: dict[str, Any], ids: list[str], *, has_coverage: bool
) -> JointRun:
    planned = PlannedRun(
        at=at,
        settings=settings,
        end=rng.choice([None, None, *ENDS]),
        end_at=rng.randint(1, 25),
        at_request=rng.random() < 0.3,
    )
    is_single = rng.random() < 0.25
    chosen = rng.sample(ids, 1 if is_single else rng.randint(1, len(ids)))
    troubles = {
        each: Trouble(rng.choice(FAULTS), rng.choice([0, 0, 1, 2, 3]))
        for each in chosen
        if rng.random() < 0.3
    }
    keeps = has_coverage and rng.random() < 0.85
    return JointRun(planned, tuple(chosen), is_single, keeps, troubles)


def _happenings(rng: random.Random, lookback: int) -> list[Happening]:
    """Events with ties, some of them late; many organizations have none."""
    happenings = []
    moments = [rng.uniform(0, SPAN_SECONDS) for _ in range(rng.randint(1, 6))]
    for number in range(rng.choice([0, 0, 1, 5, 20])):
        is_tied = rng.random() < 0.3
        seconds = round(rng.choice(moments) if is_tied else rng.uniform(0, SPAN_SECONDS), 3)
        at = (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
        late = rng.uniform(0, lookback) if lookback and rng.random() < 0.4 else 0.0
        event = an_event(id=f"e{number:03}", at=at.replace("+00:00", "Z"), context={})
        happenings.append(Happening(event, seconds + late))
    return happenings


class Organization(World):
    """One organization of a world: its service, and its events that are not visible yet."""

    def __init__(self, world: "JointWorld", organization_id: str, history: History) -> None:
        self.history = history
        self.active: set[str] = set()
        self._ahead = sorted(history.happenings, key=lambda each: each.visible_at)
        self.service = Service(
            organization_id=organization_id,
            access_token=world.joint.tokens[organization_id],
            clock=lambda: world.seconds,
            faults=[
                Fault(
                    kind=cast("Any", "ignore-cursor"),
                    only=partial(self._is_active, "ignore-cursor"),
                )
            ],
        )

    def show(self, seconds: float) -> None:
        """Show the events that are visible by then."""
        while self._ahead and self._ahead[0].visible_at <= seconds:
            self.service.add([self._ahead.pop(0).event])


class JointWorld(World):
    """The clock, and several organizations."""

    def __init__(self, joint: JointHistory) -> None:
        self.joint = joint
        self.seconds = 0.0
        self.random = joint.rng
        self.history = joint.any_history
        self.lock = threading.RLock()
        self.organizations = {
            each: Organization(self, each, history) for each, history in joint.histories.items()
        }

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def pass_time(self, seconds: float) -> None:
        """Let time go by, and show the events that become visible meanwhile."""
        with self.lock:
            self.seconds += seconds
            for each in self.organizations.values():
                each.show(self.seconds)


@dataclass
class Traffic:
    """The requests for one organization in one run, counted as `Network` counts those of a run.

    Attributes:
        range_end: the end of the range that the first of them requested.
        came_at: when that request was sent, in seconds.
    """

    range_end: Instant | None = None
    came_at: float = 0.0
    count: int = 0
    cursors_ignored: int = 0
    impatient: int = 0
    most_in_flight: int = 0


class JointNetwork(Network):
    """Carries the requests of a run with several organizations.

    Attributes:
        traffic: the requests for each organization.
    """

    def __init__(self, world: JointWorld, run: JointRun, met: Callable[[str], None]) -> None:
        super().__init__(world, run.planned, met)
        self.traffic = {each: Traffic() for each in run.organizations}
        self._joint_world = world
        self._troubles = run.troubles
        self._limited_until: dict[str, float] = {}

    def _carry(self, request: requests.PreparedRequest) -> requests.Response:
        if self.is_over:
            raise requests.ConnectionError("the run is over")
        self.count += 1
        assert self.count <= 3000, "the run does not end"
        self._met("request")
        world = self._joint_world
        parts = urlsplit(request.url or "")
        organization_id = parts.path.split("/")[3]
        assert organization_id in self.traffic, f"{organization_id} is not configured"
        token = world.joint.tokens[organization_id]
        sent = request.headers["Authorization"]
        assert sent == f"Bearer {token}", f"another organization's token: {organization_id}"
        traffic = self.traffic[organization_id]
        traffic.count += 1
        if traffic.range_end is None:
            traffic.range_end = parse_instant(parse_qs(parts.query)["endTime"][0])
            traffic.came_at = world.seconds
        traffic.impatient += world.seconds < self._limited_until.get(token, 0.0) - 1e-6
        world.pass_time(world.random.choice([0.0, 0.01, 1.5]))
        organization = world.organizations[organization_id]
        trouble = self._troubles.get(organization_id)
        kind = trouble.kind if trouble and traffic.count > trouble.after else ""
        if kind == "early 429" and trouble and traffic.count > trouble.after + 2:
            kind = ""
        organization.active = {"ignore-cursor"} if kind == "cursor" else set()
        if kind.endswith("429"):
            self._limited_until[token] = world.seconds + RETRY_AFTER_SECONDS
            return a_response(429, b"{}", {"Retry-After": str(RETRY_AFTER_SECONDS)})
        if kind and kind != "cursor":
            return a_response(int(kind), b"{}", {})
        response = organization.service.respond(
            "GET", parts.path, parts.query.encode(), dict(request.headers)
        )
        traffic.cursors_ignored += kind == "cursor" and "cursor=" in parts.query
        return a_response(response.status, response.body, dict(response.headers))
