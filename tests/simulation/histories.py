"""A history that is drawn from a seed: its events, the settings of its runs, and its faults.

A history of one organization has faults of the network and settings that change. A joint history
has several organizations, each with troubles of its own, and writes coverage records.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.builders import an_event

START: Final = datetime(2016, 12, 31, 23, 40, tzinfo=UTC)
"""Near the end of 2016, whose last second was a leap second."""

SPAN_SECONDS: Final = 1500.0
"""Events and runs lie within so many seconds after `START`."""

TRANSPORT_FAULTS: Final = ("status 500", "status 429", "reset", "cut", "timeout", "not JSON")
SERVICE_FAULTS: Final = ("empty", "short", "expire", "null-cursor")
ENDS: Final = ("killed", "stopped", "pipe closed")
ACTION_TYPES: Final = ("workspace_create", "user_login", "channel_delete")
TROUBLES: Final = ("401", "403", "404", "500", "429", "cursor", "early 429")
EARLY_RETRY_AFTER_SECONDS: Final = 10
BATCHES: Final = "memory://batches"


@dataclass(frozen=True)
class Happening:
    """An event, and the second after `START` from which the service shows it."""

    event: dict[str, Any]
    visible_at: float


@dataclass(frozen=True)
class Trouble:
    """What goes wrong with one organization in one run.

    Attributes:
        kind: one of `TROUBLES`.
        after: how many of its requests succeed before that.
    """

    kind: str
    after: int


@dataclass(frozen=True)
class PlannedRun:
    """When a run starts, what it reads, its settings, and what happens to it.

    Attributes:
        at: seconds after `START`.
        settings: those of this run.
        organizations: the ids that it reads.
        is_single: whether the only one is configured as ``organization_id``.
        has_coverage: whether the catalog selects the coverage records.
        troubles: what goes wrong, by organization.
        skew: seconds by which the tap's clock is ahead.
        states_back: which STATE it starts from: 0 for the newest, 2 for two before it.
        end: one of `ENDS`, None if it may run to its end.
        end_at: the number of the message, or with `at_request` of the request, at which it ends.
        fault_share: the share of its requests that meet a fault.
        shuffles: whether the service shuffles the events of each page.
        ignores_cursor: whether a gateway sends the first page again, with a new cursor.
        empty_cursor: whether the last page has ``"nextCursor": ""``.
        early_429: how many of its first requests are refused with status 429.
    """

    at: float
    settings: dict[str, Any]
    organizations: tuple[str, ...]
    is_single: bool = True
    has_coverage: bool = False
    troubles: dict[str, Trouble] = field(default_factory=dict)
    skew: float = 0.0
    states_back: int = 0
    end: str | None = None
    end_at: int = 0
    at_request: bool = False
    fault_share: float = 0.0
    shuffles: bool = False
    ignores_cursor: bool = False
    empty_cursor: bool = False
    early_429: int = 0


@dataclass(frozen=True)
class Caps:
    """Bounds of the tap, made small so that a history reaches them.

    Attributes:
        memory: ids kept in STATE.
        memory_before: ids held during a run.
        groups: the approximate number of groups of ids in STATE.
        pages_held: pages requested and not taken.
    """

    memory: int
    memory_before: int
    groups: int
    pages_held: int


@dataclass(frozen=True)
class History:
    """Everything that a seed decides.

    Attributes:
        settings: those of the last runs, which must deliver everything.
        happenings: the events of each organization.
        tokens: the token of each organization.
        has_coverage: whether the last runs write coverage records.
        displaced_places: by how many places one event is always too late, less than a page; None if
            no event is.
        most_in_flight: how many requests in flight gain time, as the workers estimate it.
        uses_threads: whether real threads send the requests.
    """

    seed: int
    settings: dict[str, Any]
    happenings: dict[str, list[Happening]]
    tokens: dict[str, str]
    runs: list[PlannedRun]
    has_coverage: bool
    cursor_lifetime: int | None
    commits_at_state: bool
    caps: Caps | None
    displaced_places: int | None
    most_in_flight: int
    uses_threads: bool
    rng: random.Random = field(repr=False)

    @property
    def is_joint(self) -> bool:
        return len(self.happenings) > 1

    def last_run(self, seconds: float = 0.0) -> PlannedRun:
        """A run that reads all organizations to their end, so long after all events are visible."""
        visible_at = [each.visible_at for events in self.happenings.values() for each in events]
        return PlannedRun(
            at=max([*visible_at, self.runs[-1].at, SPAN_SECONDS]) + 1 + seconds,
            settings=self.settings,
            organizations=tuple(self.happenings),
            is_single=not self.is_joint,
            has_coverage=self.has_coverage,
        )

    @property
    def is_steady(self) -> bool:
        """Whether all runs read alike, so that no event may be missing at the end."""
        return (
            self.caps is None
            and self.displaced_places is None
            and all(run.settings == self.settings and not run.skew for run in self.runs)
        )


def draw(seed: int, *, is_joint: bool = False, uses_threads: bool = False) -> History:
    """The history of a seed."""
    rng = random.Random(f"joint {seed}" if is_joint else seed)
    ids = [f"{n:08x}-0000-4000-8000-000000000000" for n in range(rng.randint(2, 6))]
    ids = ids if is_joint else ids[:1]
    is_large = not is_joint and rng.random() < 0.2
    changes = not is_joint and rng.random() < 0.4
    has_coverage = is_joint and rng.random() < 0.6
    settings = _settings(rng, is_large=is_large) | _batches(random.Random(f"batches of {seed}"))
    settings |= _exclusion(random.Random(f"exclusion of {seed}"))
    settings |= {"max_retries": 2} if is_joint else {}
    ats = sorted(
        rng.uniform(0, SPAN_SECONDS) for _ in range(rng.randint(1, 6 if changes or is_joint else 4))
    )
    if is_joint:
        runs = [_joint_run(rng, at, settings, ids, has_coverage=has_coverage) for at in ats]
    else:
        runs = [_run(rng, at, settings, ids, changes=changes, is_large=is_large) for at in ats]
    longest_lookback = max(run.settings["lookback_seconds"] for run in runs)
    happenings = {
        each: _happenings(rng, _count(rng, is_joint, is_large), longest_lookback, is_large=is_large)
        for each in ids
    }
    displaced_places = None
    if not is_joint and rng.random() < (0.5 if is_large else 0.1):
        displaced_places = rng.randint(1, settings["page_size"])
        settings |= {"page_size": displaced_places + rng.randint(1, 4)}
        runs = [
            replace(run, settings=run.settings | {"page_size": settings["page_size"]})
            for run in runs
        ]
    has_lifetime = not is_joint and not displaced_places
    has_caps = not is_joint and rng.random() < (0.5 if changes else 0.15)
    tokens = [f"acme_pat_token-{n}" for n in range(rng.randint(1, 3))]
    return History(
        seed=seed,
        settings=settings,
        happenings=happenings,
        tokens={each: rng.choice(tokens) for each in ids},
        runs=runs,
        has_coverage=has_coverage,
        cursor_lifetime=rng.choice([None, None, None, 1, 3]) if has_lifetime else None,
        commits_at_state=rng.random() < 0.5,
        caps=_caps(rng, runs, happenings[ids[0]]) if has_caps else None,
        displaced_places=displaced_places,
        most_in_flight=rng.choice([1, 2, 4, 100, 100]),
        uses_threads=uses_threads,
        rng=rng,
    )


def _count(rng: random.Random, is_joint: bool, is_large: bool) -> int:
    """The number of events of an organization; many of several have none."""
    if is_joint:
        return rng.choice([0, 0, 1, 5, 20])
    return rng.randint(60, 300) if is_large else rng.randint(0, 40)


def _settings(rng: random.Random, *, is_large: bool) -> dict[str, Any]:
    lane: dict[str, Any] = rng.choice([{}, {"stream_maps": {"audit_events": {"also": "id"}}}])
    return lane | {
        "page_size": rng.choice([2, 3, 5, 10, 20] if is_large else [1, 2, 3, 5, 10, 1000]),
        "lookback_seconds": rng.choice([0, 0, 3, 60, 300]),
        "concurrency": rng.choice([2, 4, 8] if is_large else [1, 2, 4, 8]),
        "max_retries": rng.choice([0, 2, 8]),
    }


def _batches(rng: random.Random) -> dict[str, Any]:
    """Whether records go into batch files, and how many into each."""
    if rng.random() < 0.7:
        return {}
    encoding = {"format": "jsonl", "compression": rng.choice(["gzip", "none"])}
    storage = {"root": BATCHES}
    batch_size = rng.choice([1, 3, 10, 10_000])
    return {"batch_config": {"encoding": encoding, "storage": storage, "batch_size": batch_size}}


def _exclusion(rng: random.Random) -> dict[str, Any]:
    """Whether events of some action types are excluded, and of which."""
    if rng.random() < 0.7:
        return {}
    return {"exclude_action_types": rng.sample(ACTION_TYPES, rng.choice([1, 1, 2, 3]))}


def _run(
    rng: random.Random,
    at: float,
    settings: dict[str, Any],
    ids: Sequence[str],
    *,
    changes: bool,
    is_large: bool,
) -> PlannedRun:
    end = rng.choice([None, *ENDS])
    early_429 = rng.randint(1, 2) if rng.random() < 0.1 else 0
    return PlannedRun(
        at=at,
        settings=_changed(rng, settings) if changes else settings,
        organizations=tuple(ids),
        skew=rng.choice([0.0, 0.0, rng.uniform(-5, 5)]) if changes else 0.0,
        states_back=2 if changes and rng.random() < 0.2 else 0,
        end=end,
        end_at=rng.randint(1, 120 if is_large else 30),
        at_request=rng.random() < 0.3,
        fault_share=rng.choice([0.0, 0.02, 0.1] if is_large else [0.0, 0.1, 0.4]),
        shuffles=rng.random() < 0.15,
        ignores_cursor=rng.random() < 0.08,
        empty_cursor=rng.random() < 0.1,
        early_429=early_429,
    )


def _joint_run(
    rng: random.Random,
    at: float,
    settings: dict[str, Any],
    ids: Sequence[str],
    *,
    has_coverage: bool,
) -> PlannedRun:
    is_single = rng.random() < 0.25
    chosen = rng.sample(ids, 1 if is_single else rng.randint(1, len(ids)))
    return PlannedRun(
        at=at,
        settings=settings,
        organizations=tuple(chosen),
        is_single=is_single,
        has_coverage=has_coverage and rng.random() < 0.85,
        troubles={
            each: Trouble(rng.choice(TROUBLES), rng.choice([0, 0, 1, 2, 3]))
            for each in chosen
            if rng.random() < 0.3
        },
        end=rng.choice([None, None, *ENDS]),
        end_at=rng.randint(1, 25),
        at_request=rng.random() < 0.3,
    )


def _changed(rng: random.Random, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of one run, some of them changed for it alone."""
    changed = dict(settings)
    if rng.random() < 0.4:
        changed["lookback_seconds"] = rng.choice([0, 3, 60, 300, 600])
    if rng.random() < 0.2:
        changed["page_size"] = rng.choice([2, 5, 7, 1000])
    if rng.random() < 0.2:
        changed["concurrency"] = rng.choice([1, 3, 8])
    if rng.random() < 0.2:
        changed["action_types"] = rng.sample(ACTION_TYPES, rng.randint(1, 2))
    if "action_types" in changed or rng.random() < 0.2:
        changed.pop("exclude_action_types", None)
    elif rng.random() < 0.2:
        changed |= _exclusion(rng)
    start = rng.uniform(-100, SPAN_SECONDS)
    if rng.random() < 0.2:
        changed["start_date"] = _date(start)
    if rng.random() < 0.2:
        changed["end_date"] = _date(start + rng.uniform(0, SPAN_SECONDS))
    return changed


def _date(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


def _caps(rng: random.Random, runs: Sequence[PlannedRun], happenings: Sequence[Happening]) -> Caps:
    """Small bounds, in about the proportions of the real ones: the memory holds a few pages."""
    page_size = max(min(run.settings["page_size"], len(happenings)) for run in runs)
    return Caps(
        memory=max(rng.randint(5, 50), 3 * (2 + page_size)),
        memory_before=3 * page_size,
        groups=rng.choice([4, 256]),
        pages_held=rng.choice([1, 10, 100]),
    )


def _happenings(
    rng: random.Random, count: int, lookback: int, *, is_large: bool
) -> list[Happening]:
    """Events with ties and bursts, some late by up to the lookback, some future-dated."""
    moments = [rng.uniform(0, SPAN_SECONDS) for _ in range(rng.randint(1, 12))]
    burst_seconds = rng.choice([0.0, 5.0, 60.0]) if is_large else 0.0
    burst_share = rng.choice([0.0, 0.3, 0.7, 0.95]) if is_large else 0.7
    happenings = []
    for number in range(count):
        moment = rng.uniform(0, SPAN_SECONDS)
        if rng.random() < burst_share:
            moment = min(rng.choice(moments) + rng.uniform(0, burst_seconds), SPAN_SECONDS)
        if rng.random() < 0.3:
            moment = float(int(moment))
        text, exact = _time(rng, moment)
        late = rng.uniform(0, lookback) if lookback and rng.random() < 0.4 else 0.0
        early = rng.uniform(0, 2000) if rng.random() < 0.1 else 0.0
        event = an_event(
            id=f"{number * 7919 % 1000:03}-{number}",  # the same in each organization
            at=text,
            action_type=rng.choice(ACTION_TYPES),
            context={},
        )
        happenings.append(Happening(event, max(0.0, exact + late - early)))
    return happenings


def _time(rng: random.Random, moment: float) -> tuple[str, float]:
    """An RFC 3339 text of any precision and offset, and the second after `START` that it names."""
    digits = rng.choice([0, 0, 1, 3, 6, 9, 15])
    whole = int(moment)
    fraction = f"{moment - whole:.15f}"[2 : 2 + digits]
    local = START + timedelta(seconds=whole)
    minutes = rng.choice([0, 0, 0, 120, -330])
    letters = rng.choice(["TZ", "TZ", "tz"])
    shifted = local + timedelta(minutes=minutes)
    zone = f"{'+' if minutes > 0 else '-'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    date_time = shifted.strftime(f"%Y-%m-%d{letters[0]}%H:%M:%S")
    dot = "." if fraction else ""
    text = f"{date_time}{dot}{fraction}{zone if minutes else letters[1]}"
    return text, whole + float(f"0.{fraction or 0}")
