"""A history, drawn from a seed: which events there are, what goes wrong, when runs are killed."""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.builders import an_event

START: Final = datetime(2016, 12, 31, 23, 40, tzinfo=UTC)
"""Near the end of 2016, whose last second was a leap second."""

TRANSPORT_FAULTS: Final = ("status 500", "status 429", "reset", "cut", "timeout", "not JSON")
SERVICE_FAULTS: Final = ("empty", "short", "expire", "null-cursor")
ENDS: Final = ("killed", "stopped", "pipe closed")


@dataclass(frozen=True)
class Happening:
    """An event, and the second after `START` from which the service shows it."""

    event: dict[str, Any]
    visible_at: float


@dataclass(frozen=True)
class PlannedRun:
    """When a run starts, and what befalls it.

    Attributes:
        at: seconds after `START`.
        end: one of `ENDS`, None where it may run to its end.
        end_at: the message, or with `at_request` the request, that meets this end.
        fault_share: how many of its requests meet a fault.
        shuffles: whether the service breaks its promise of order.
    """

    at: float
    end: str | None = None
    end_at: int = 0
    at_request: bool = False
    fault_share: float = 0.0
    shuffles: bool = False


@dataclass(frozen=True)
class History:
    """Everything that a seed decides."""

    seed: int
    settings: dict[str, Any]
    happenings: list[Happening]
    runs: list[PlannedRun]
    cursor_lifetime: int | None
    commits_at_state: bool
    rng: random.Random = field(repr=False)

    @property
    def over_at(self) -> float:
        """A second after everything has happened that will."""
        latest = max((each.visible_at for each in self.happenings), default=0.0)
        return max(latest, self.runs[-1].at, 1500.0) + 1


def draw(seed: int) -> History:
    """The history of a seed."""
    rng = random.Random(seed)
    lookback = rng.choice([0, 0, 3, 60, 300])
    runs = [_run(rng, at) for at in sorted(rng.uniform(0, 1500) for _ in range(rng.randint(1, 4)))]
    lane: dict[str, Any] = rng.choice([{}, {"stream_maps": {"audit_events": {"also": "id"}}}])
    settings = lane | {
        "page_size": rng.choice([1, 2, 3, 5, 10, 1000]),
        "lookback_seconds": lookback,
        "concurrency": rng.choice([1, 2, 4, 8]),
        "max_retries": rng.choice([0, 2, 8]),
    }
    return History(
        seed=seed,
        settings=settings,
        happenings=_happenings(rng, lookback),
        runs=runs,
        cursor_lifetime=rng.choice([None, None, None, 1, 3]),
        commits_at_state=rng.random() < 0.5,
        rng=rng,
    )


def _run(rng: random.Random, at: float) -> PlannedRun:
    return PlannedRun(
        at=at,
        end=rng.choice([None, *ENDS]),
        end_at=rng.randint(1, 30),
        at_request=rng.random() < 0.3,
        fault_share=rng.choice([0.0, 0.1, 0.4]),
        shuffles=rng.random() < 0.15,
    )


def _happenings(rng: random.Random, lookback: int) -> list[Happening]:
    """Events with ties and bursts, some late by up to the lookback, some dated in the future."""
    moments = [rng.uniform(0, 1500) for _ in range(rng.randint(1, 12))]
    happenings = []
    for number in range(rng.randint(0, 40)):
        moment = rng.choice(moments) if rng.random() < 0.7 else rng.uniform(0, 1500)
        if rng.random() < 0.3:
            moment = float(int(moment))
        text, exact = _time(rng, moment)
        late = rng.uniform(0, lookback) if lookback and rng.random() < 0.4 else 0.0
        early = rng.uniform(0, 2000) if rng.random() < 0.1 else 0.0
        event = an_event(id=f"{rng.randrange(10**6):06}-{number}", at=text, context={})
        happenings.append(Happening(event, max(0.0, exact + late - early)))
    return happenings


def _time(rng: random.Random, moment: float) -> tuple[str, float]:
    """An RFC 3339 text of any precision and offset, and the second after `START` it names."""
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
