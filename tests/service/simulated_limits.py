"""Services with limits, and runs against them in simulated time."""

import heapq
import math
import random
from collections.abc import Callable
from typing import NamedTuple, Protocol

from tap_audit_events.service.adaptive_rate import AdaptiveRate

WORKERS = 8


class Limit(Protocol):
    """A service's limit: 0 admits a request, and any other number is how long it has to wait."""

    def seconds_to_wait(self, now: float) -> float: ...


class NoLimit:
    """Admits every request."""

    def seconds_to_wait(self, now: float) -> float:
        return 0.0


class MinuteQuota:
    """Admits some requests in each minute; the run starts `begins_at` seconds into a minute."""

    def __init__(self, requests: int, *, begins_at: float = 0.0) -> None:
        self._requests = requests
        self._begins_at = begins_at
        self._minute, self._admitted = -1, 0

    def seconds_to_wait(self, now: float) -> float:
        minute, second = divmod(now + self._begins_at, 60)
        if minute != self._minute:
            self._minute, self._admitted = int(minute), 0
        self._admitted += 1
        return 0.0 if self._admitted <= self._requests else 60 - second


class OtherJob:
    """A quota that another job uses up: some requests pass, then all wait; this repeats."""

    def __init__(self, passes: int, wait_seconds: float, *, times: int = 1) -> None:
        self._passes, self._wait_seconds, self._times = passes, wait_seconds, times
        self._left, self._refuses_until = passes, -math.inf

    def seconds_to_wait(self, now: float) -> float:
        if now < self._refuses_until:
            return self._refuses_until - now
        if not self._times:
            return 0.0
        if self._left:
            self._left -= 1
            return 0.0
        self._times, self._left = self._times - 1, self._passes
        self._refuses_until = now + self._wait_seconds
        return self._wait_seconds


class ByChance:
    """Refuses a share of the requests at random, whatever their rate."""

    def __init__(self, share: float, seed: int) -> None:
        self._share, self._chance = share, random.Random(seed)

    def seconds_to_wait(self, now: float) -> float:
        return 1.0 if self._chance.random() < self._share else 0.0


class Until:
    """Applies one limit until a time, and another one afterwards."""

    def __init__(self, seconds: float, before: Limit, after: Limit) -> None:
        self._seconds, self._before, self._after = seconds, before, after

    def seconds_to_wait(self, now: float) -> float:
        return (self._before if now < self._seconds else self._after).seconds_to_wait(now)


class Outcome(NamedTuple):
    """The times at which requests of a simulated run succeeded or were refused."""

    succeeded_at: list[float]
    refused_at: list[float]

    @property
    def seconds(self) -> float:
        return self.succeeded_at[-1]

    @property
    def refused_share(self) -> float:
        return len(self.refused_at) / (len(self.refused_at) + len(self.succeeded_at))

    def refused_share_after(self, successes: int) -> float:
        since = self.succeeded_at[successes - 1]
        refused = sum(at > since for at in self.refused_at)
        return refused / (refused + len(self.succeeded_at) - successes)


def in_whole_seconds(seconds: float) -> float:
    return float(math.ceil(seconds))


def simulate(
    limit: Limit,
    requests: int,
    *,
    response_seconds: float,
    workers: int = WORKERS,
    retry_after: Callable[[float], float] = in_whole_seconds,
) -> Outcome:
    """In simulated time, send requests as fast as an adaptive rate permits, until all succeed.

    Response times vary by 30 %, and are the same at each call.
    """
    rate, now, left, sent = AdaptiveRate(workers), 0.0, requests, 0
    outcome, chance = Outcome([], []), random.Random(1)
    in_flight: list[tuple[float, int, float, float]] = []
    while left or in_flight:
        may_send = left and len(in_flight) < int(rate.limit)
        wait = rate.seconds_to_wait(now) if may_send else math.inf
        if wait == 0:
            rate.start(now)
            sent, left = sent + 1, left - 1
            ends_at = now + response_seconds * chance.uniform(0.7, 1.3)
            heapq.heappush(in_flight, (ends_at, sent, now, limit.seconds_to_wait(now)))
        elif not in_flight or now + wait < in_flight[0][0]:
            now += wait
        else:
            now, _, started_at, refused_seconds = heapq.heappop(in_flight)
            if refused_seconds:
                left += 1
                outcome.refused_at.append(now)
                seconds = retry_after(refused_seconds)
                rate.rate_limited(now, started_at=started_at, seconds=seconds)
            else:
                outcome.succeeded_at.append(now)
            rate.end(started_at=started_at, succeeded=not refused_seconds)
        assert len(in_flight) <= workers
        assert sent < 10 * requests, "most requests are refused"
    return outcome
