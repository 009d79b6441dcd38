"""What a run needs from outside: clock, connections, threads, signals."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.extraction.workers import Fetch, RequestPlan, Workers
from tap_audit_events.run.quarantine import QuarantineFile
from tap_audit_events.service.connection import Adapter
from tap_audit_events.service.rate_limiter import RateLimiter, RequestCounts
from tap_audit_events.service.transport import Connections, NewAdapter, Transport

MAX_THREADS: Final = 64
"""Maximum number of threads of a run for several organizations: more than `concurrency`, because
some threads wait."""


@dataclass(frozen=True)
class Runtime:
    """The clock, connections, threads and signals of a run; tests and the simulation replace them.

    There is a rate limiter for each token.

    Attributes:
        shuffle: puts the organizations of a run into the order in which they are requested.
        connections: those that several runs share; None if each run has its own.
    """

    stop: Stop = field(default_factory=Stop)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    shuffle: Callable[[list[Any]], object] = random.shuffle
    new_adapter: NewAdapter = Adapter
    connections: Connections | None = None
    new_rate_limiter: Callable[[RequestCounts], RateLimiter] = RateLimiter
    new_workers: Callable[[RequestPlan, Fetch, Stop, int], Workers] = Workers
    new_quarantine: Callable[..., QuarantineFile] = QuarantineFile

    def new_transport(self, base_url: str) -> Transport:
        """What sends the requests of a run; as `Transport`, it may raise `RefusedError`."""
        return Transport(base_url, self.new_adapter, self.connections)
