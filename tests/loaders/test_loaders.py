"""Real loaders store what the tap delivers, with the changes that `report.json` lists."""

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tap_audit_events.sandbox import generate
from tests.loaders.cases import CASES, Case
from tests.loaders.comparison import REFUSED
from tests.loaders.findings import note, read
from tests.loaders.trial import Outcome, Trial, hostile_changes

pytestmark = [pytest.mark.loaders, pytest.mark.usefixtures("servers")]

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
REPEATED = [case for case in CASES if case.repeats]
ONCE = Outcome(missing=0, repeated=0)


def by_name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_each_field_is_kept_or_changed_as_expected(case: Case, tmp_path: Path) -> None:
    """The test fails once a loader keeps more or less than the report says."""
    expected = read().cases[case.name].changes
    refused = [name for name, changes in expected.items() if REFUSED in changes.values()]

    found, columns = hostile_changes(case, tmp_path / "trial", refused)
    note("fields", case.name, {"changes": found, "columns": columns, "versions": case.versions()})

    assert found == expected


@pytest.mark.parametrize("case", REPEATED, ids=by_name)
def test_a_second_run_adds_only_new_events(case: Case, tmp_path: Path) -> None:
    """The second run begins with the state that the loader printed."""
    old, new = (
        generate(30, days=2, seed=seed, until=NOON.replace(day=10 + seed)) for seed in (1, 5)
    )
    with ExitStack() as stack:
        trial = Trial.start(case, tmp_path / "trial", stack)
        trial.service.add(old)
        first = trial.load().check()
        trial.service.add(new)
        trial.load(first.state).check()

        assert Outcome.of([*old, *new], trial.loader.ids()) == ONCE


@pytest.mark.parametrize("case", REPEATED, ids=by_name)
def test_a_run_after_a_failed_one_adds_the_rest(case: Case, tmp_path: Path) -> None:
    """The service and the tap fail in the middle; the next run begins with the loader's state."""
    events = generate(60, days=2, seed=3, until=NOON)
    with ExitStack() as stack:
        trial = Trial.start(case, tmp_path / "trial", stack)
        trial.service.add(events)
        trial.service.add_faults(["status:code=500@4"])
        failed = trial.load(page_size=10, max_retries=0, concurrency=1)
        assert (failed.tap_exit_code, failed.loader_exit_code) == (1, 0), failed.log
        assert 0 < len(trial.loader.ids()) < len(events)
        trial.load(failed.state).check()

        assert Outcome.of(events, trial.loader.ids()) == ONCE


@pytest.mark.parametrize("case", [case for case in REPEATED if not case.is_mapped], ids=by_name)
def test_a_run_after_a_killed_loader_misses_nothing(case: Case, tmp_path: Path) -> None:
    """The next run begins with the last state that the loader printed, or without one."""
    events = generate(60, days=2, seed=3, until=NOON)
    with ExitStack() as stack:
        trial = Trial.start(case, tmp_path / "trial", stack)
        trial.service.add(events)
        state = trial.load_half_and_kill(page_size=10, concurrency=1)
        trial.load(state).check()

        outcome = Outcome.of(events, trial.loader.ids())
    assert outcome.missing == 0
    assert outcome.repeated == 0 or not trial.loader.has_key
