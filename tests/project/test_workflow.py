"""The workflow file runs `.ci/run` on each supported Python.

`make check` runs zizmor on it, which checks its form and finds what is unsafe in it.
"""

import re
import tomllib
from typing import Any

import yaml

from tests.integrations.pipeline import PROJECT

TEXT = (PROJECT / ".github" / "workflows" / "ci.yml").read_text()
JOB: dict[str, Any] = yaml.safe_load(TEXT)["jobs"]["ci"]
MATRIX: dict[str, list[str]] = JOB["strategy"]["matrix"]


def test_each_supported_python_is_used() -> None:
    """The workflow and `make test-matrix` use the versions of the classifiers."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    supported = re.findall(r":: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)

    assert MATRIX["python"] == supported
    assert f"MATRIX ?= {' '.join(supported)}\n" in (PROJECT / "Makefile").read_text()


def test_every_value_from_the_matrix_is_defined_and_used() -> None:
    assert set(re.findall(r"\bmatrix\.(\w+)", TEXT)) == MATRIX.keys()


def test_the_workflow_runs_only_ci_run() -> None:
    """It does so with the Python that was set up. Actions are pinned to a commit."""
    *actions, command = JOB["steps"]

    assert (command["run"], command["env"]) == (".ci/run", {"PYTHON": "python"})
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", each["uses"]) for each in actions)
