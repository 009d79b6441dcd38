"""The workflow file runs `.ci/run`, the tests on Python 3.14, and tries the newest dependencies.

`make check` runs zizmor on it, which checks its form and finds what is unsafe in it.
"""

import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.integrations.pipeline import PROJECT

TEXT = (PROJECT / ".github" / "workflows" / "ci.yml").read_text()
JOBS: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["jobs"]
JOB = JOBS["ci"]
MATRIX: dict[str, list[str]] = JOB["strategy"]["matrix"]


def test_each_supported_python_is_used() -> None:
    """The workflow and `make test-matrix` use the versions of the classifiers."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    supported = re.findall(r":: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)

    assert [*MATRIX["python"], "3.14"] == supported
    assert f"MATRIX ?= {' '.join(supported)}\n" in (PROJECT / "Makefile").read_text()


def test_every_value_from_the_matrix_is_defined_and_used() -> None:
    assert set(re.findall(r"\bmatrix\.(\w+)", TEXT)) == MATRIX.keys()


@pytest.mark.parametrize(
    ("job", "runs"),
    [("ci", ".ci/run"), ("newest", "make test-newest"), ("suite", "make test-matrix MATRIX=3.14")],
)
def test_a_job_runs_one_command(job: str, runs: str) -> None:
    """It does so with the Python that was set up. Actions are pinned to a commit."""
    *actions, command = JOBS[job]["steps"]

    assert (command["run"], command["env"]) == (runs, {"PYTHON": "python"})
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", each["uses"]) for each in actions)


def test_only_the_newest_dependencies_may_fail_without_blocking() -> None:
    """A pre-release of a library may be broken, and its failure is only shown."""
    assert {name: job.get("continue-on-error", False) for name, job in JOBS.items()} == {
        "ci": False,
        "newest": True,
        "suite": False,
    }
