"""The rate of each loader, which no test checks. `make test-loaders UPDATE=1` runs only these."""

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tap_audit_events.sandbox import generate
from tests.loaders.cases import CASES, Case
from tests.loaders.findings import note
from tests.loaders.trial import Outcome, Trial

EVENTS = 10_000
TIMED = [case for case in CASES if case.is_timed]


@pytest.mark.loaders
@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("case", TIMED, ids=[case.name for case in TIMED])
def test_many_events_are_loaded_once(case: Case, tmp_path: Path) -> None:
    """The messages are read from a file, and the time of the loader's start is not counted."""
    events = generate(EVENTS, days=30, seed=1, until=datetime(2026, 1, 15, 12, tzinfo=UTC))
    with ExitStack() as stack:
        trial = Trial.start(case, tmp_path / "trial", stack)
        trial.service.add(events)
        rate = trial.events_per_second()

        assert Outcome.of(events, trial.loader.ids()) == Outcome(missing=0, repeated=0)
    note("rate", case.name, {"events_per_second": rate})
