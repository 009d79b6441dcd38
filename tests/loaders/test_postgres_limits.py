"""What `docs/loaders.md` says about times and numbers in PostgreSQL is true of its loaders."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.builders import an_event
from tests.loaders.cases import CASES, DETAILS_AS_TEXT
from tests.loaders.postgres import PostgresLoader
from tests.loaders.trial import Trial

pytestmark = [pytest.mark.loaders, pytest.mark.usefixtures("servers")]

OF_POSTGRES = {case.name: case for case in CASES if issubclass(case.loader, PostgresLoader)}
ROUNDED = {
    "meltanolabs-target-postgres, BATCH",
    "pipelinewise-target-postgres",
    "pipelinewise-target-postgres, raw_event",
}
LOADERS = ["meltanolabs-target-postgres", "pipelinewise-target-postgres"]
EXACT = "SELECT left(raw_event::json ->> 'occurredAt', 10) FROM audit_events"
LAST_OF_YEAR = "2025-12-31T23:59:59.9999999Z"
TOO_LARGE = json.dumps(an_event("1", action={"type": "t", "details": {"ratio": "RATIO"}})).replace(
    '"RATIO"', "1e200000"
)


@pytest.fixture
def trial(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trial]:
    with ExitStack() as stack:
        yield Trial.start(OF_POSTGRES[request.param], tmp_path / "trial", stack)


@pytest.mark.parametrize("trial", OF_POSTGRES, indirect=True)
def test_a_time_that_is_rounded_may_be_on_the_next_day(trial: Trial) -> None:
    """It stays on its day if the loader cuts it; `raw_event` has every digit."""
    trial.service.add([an_event(at=LAST_OF_YEAR)])

    trial.load().check()

    assert isinstance(trial.loader, PostgresLoader)
    (column,) = (name for name in trial.loader.columns() if name.lower() == "occurredat")
    (day,) = trial.loader.query(f'SELECT CAST("{column}" AS date) FROM audit_events')  # noqa: S608
    assert day == ("2026-01-01" if trial.case.name in ROUNDED else "2025-12-31")
    if "raw_event" in trial.case.name:
        assert trial.loader.query(EXACT) == ["2025-12-31"]


@pytest.mark.parametrize("trial", LOADERS, indirect=True)
def test_a_number_that_jsonb_refuses_can_be_loaded_as_text(trial: Trial) -> None:
    """Otherwise it ends the load, and nothing is stored."""
    trial.service.add_raw([TOO_LARGE.encode()])

    loaded = trial.load()
    assert loaded.loader_exit_code != 0
    assert trial.loader.rows() == []

    trial.load(**DETAILS_AS_TEXT).check()
    assert [row["id"] for row in trial.loader.rows()] == ["1"]
