"""The workflow file runs what `.ci/run` runs, on each supported Python.

`make check` runs zizmor on it, which knows the form of such a file and what is unsafe in one.
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
    """Those of the classifiers; `make test-matrix` has the same."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    supported = re.findall(r":: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)

    assert MATRIX["python"] == supported
    assert f"MATRIX ?= {' '.join(supported)}\n" in (PROJECT / "Makefile").read_text()


def test_every_value_from_the_matrix_is_there() -> None:
    assert set(re.findall(r"\bmatrix\.(\w+)", TEXT)) == MATRIX.keys()


def test_what_is_run_is_the_same_as_elsewhere() -> None:
    """One command, with the Python that was set up; actions are pinned to a commit."""
    *actions, command = JOB["steps"]

    assert (command["run"], command["env"]) == (".ci/run", {"PYTHON": "python"})
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", each["uses"]) for each in actions)
