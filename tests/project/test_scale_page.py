"""The arithmetic in `docs/scale.md` is correct, and its values fit the example project."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet

from tests.integrations.pipeline import PROJECT

PAGE = (PROJECT / "docs" / "scale.md").read_text()
EXAMPLE = PROJECT / "examples" / "dagster_project"


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module `docs/scale.py`, which is not in a package."""
    monkeypatch.syspath_prepend(PROJECT / "docs")
    import scale as module  # noqa: PLC0415

    return module


def test_the_assumptions_on_the_page_are_those_of_the_table(scale: ModuleType) -> None:
    given = scale.Assumptions()
    assumed = re.search(r"^Assumed: (.*)$", PAGE, re.MULTILINE)
    assert assumed
    numbers = [float(each) for each in re.findall(r"\d[\d.]*(?=\D)", assumed[1].replace(",", ""))]
    values = list(vars(given).values())
    assert [each for each in numbers if each != 24] == [float(each) for each in values]


def test_the_arithmetic_on_the_page_is_correct(scale: ModuleType) -> None:
    """The test counts the pages run by run, as the schedule starts the runs."""
    given = scale.Assumptions()
    one = scale.Load(1, given)
    pages = [max(1, -(-given.events * hour // (24 * given.page_size))) for hour in range(1, 25)]
    pages += [5, 5]
    assert len(pages) == given.runs
    assert one.pages_of_a_run == sum(pages) / len(pages)
    assert f"{one.pages_of_a_run:.1f} on average over the {given.runs} runs" in PAGE
    assert one.requests == 2 * sum(pages)
    assert f"= {one.requests} requests a day" in PAGE
    assert f"= {one.run_seconds:.0f} s. All organizations" in PAGE
    for count in (10, 1_000, 10_000):
        load = scale.Load(count, given)
        assert load.requests == count * one.requests
        assert load.pods >= count * one.run_seconds / 3600 > load.pods - 1
        assert load.token_owners * given.requests_per_second >= load.requests_per_second


def test_the_schedule_makes_as_many_runs_as_assumed(scale: ModuleType) -> None:
    """Runs start hourly, and two more in the first two hours read the day before."""
    schedules = (EXAMPLE / "audit_events_project" / "schedules.py").read_text()
    assert 'cron_schedule="10 * * * *"' in schedules
    assert "timedelta(hours=2)" in schedules
    assert scale.Assumptions().runs == 24 + 2


def test_other_assumptions_give_another_table(scale: ModuleType) -> None:
    table = scale.table(scale.Assumptions(events=50_000, requests_per_second=5))
    assert table != scale.table()
    assert table.count("\n") == 5


def test_the_values_fit_the_project() -> None:
    """The project reads the variables, the module and the secret that the values name."""
    values = yaml.safe_load((EXAMPLE / "values.yaml").read_text())
    (deployment,) = values["dagster-user-deployments"]["deployments"]
    module = deployment["dagsterApiGrpcArgs"][1]
    assert (EXAMPLE / f"{module.replace('.', '/')}.py").is_file()
    sources = "".join(path.read_text() for path in EXAMPLE.rglob("*.py"))
    for variable in deployment["env"]:
        assert f'"{variable["name"]}"' in sources
    assert 'EnvVar("TAP_AUDIT_EVENTS_ACCESS_TOKEN")' in sources
    (secret,) = (each["name"] for each in deployment["envSecrets"])
    assert f"secret `{secret}`, with the key `TAP_AUDIT_EVENTS_ACCESS_TOKEN`" in PAGE
    assert values["runLauncher"]["type"] == "K8sRunLauncher"
    config = values["dagsterDaemon"]["runCoordinator"]["config"]
    assert config["queuedRunCoordinator"]["maxConcurrentRuns"] == 9
    assert re.search(r"\| 1,000 \|.*\| 9 \| 1 \|$", PAGE, re.MULTILINE)


def test_the_files_of_the_project_are_listed() -> None:
    """Each file in the table exists, and the organizations and the workspace can be read."""
    table = PAGE.split("| file |")[1].split("\n\n")[0]
    for name in re.findall(r"`([\w/]+\.\w+)`", table):
        assert (EXAMPLE / name).is_file(), name
    assert json.loads((EXAMPLE / "organizations.json").read_text())["organizations"]
    assert yaml.safe_load((EXAMPLE / "workspace.yaml").read_text())["load_from"]


def test_the_files_can_be_queried(tmp_path: Path) -> None:
    """The folders are those into which the asset writes."""
    for organization, events in (("research", 2), ("sales", 3)):
        folder = tmp_path / "events" / f"organization={organization}" / "day=2026-01-14"
        folder.mkdir(parents=True)
        ids = pa.table({"id": [str(number) for number in range(events)]})
        parquet.write_table(ids, folder / "audit_events.parquet")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert re.findall(r"(research|sales) +│ 2026-01-14 +│ +(\d)", done.stdout) == [
        ("research", "2"),
        ("sales", "3"),
    ]
