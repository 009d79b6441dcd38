"""``make audit`` fails if it finds something or cannot check something."""

import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
CLEAN = {"pip-audit": "exit 0", "pip-licenses": "exit 0", "detect-secrets-hook": "exit 0"}


def audit(folder: Path, **tools: str) -> "subprocess.CompletedProcess[str]":
    """Audit a folder with one file of pins; each argument is the script of a replaced tool."""
    (folder / "tools").mkdir()
    (folder / "requirements").mkdir()
    (folder / "requirements" / "dev.txt").touch()
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    for name, does in (
        CLEAN | {name.replace("_", "-"): does for name, does in tools.items()}
    ).items():
        tool = folder / "tools" / name
        tool.write_text(f"#!/bin/sh\n{does}\n")
        tool.chmod(0o755)
    return subprocess.run(
        ["sh", PROJECT / ".ci" / "audit", "tools", "python"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )


def test_a_database_that_does_not_respond_is_not_a_clean_result(tmp_path: Path) -> None:
    """The audit fails, and the file of pins is shown as not checked."""
    done = audit(tmp_path, pip_audit="echo 'ERROR: no connection' >&2; exit 1")

    assert done.returncode == 1
    assert "requirements/dev.txt: none" not in done.stdout
    assert "ERROR: no connection\naudit: requirements/dev.txt: NOT CHECKED" in done.stderr


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("pip_licenses", "audit: a licence is not allowed\n"),
        ("detect_secrets_hook", "audit: there may be a secret in the tree\n"),
    ],
)
def test_a_finding_of_each_other_tool_fails(tmp_path: Path, tool: str, said: str) -> None:
    done = audit(tmp_path, **{tool: "exit 1"})

    assert (done.returncode, done.stderr) == (1, said)
