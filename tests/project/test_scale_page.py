"""The values and the query of `docs/scale.md` fit the example project."""

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import yaml
from pyarrow import parquet

from tests.integrations.pipeline import PROJECT

PAGE = (PROJECT / "docs" / "scale.md").read_text()
EXAMPLE = PROJECT / "examples" / "dagster_project"


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
