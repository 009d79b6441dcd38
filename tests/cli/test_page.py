"""`docs/export.md`: every command on it runs as it is written."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Service, generate
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import FORMATS, exported
from tests.integrations.pipeline import NOON, PROJECT
from tests.project.pages import sections, shell

PAGE = sections("export.md")
EVENTS = generate(120, days=3, seed=1, until=NOON)
RUN = [
    command
    for title in ("Export", "Only what is new", "Count", "Watch")
    for command in PAGE[title].commands
    if "--follow" not in command
]
FOLLOW = [command for command in PAGE["Watch"].commands if "--follow" in command]

PYTHON = shlex.quote(sys.executable)
AUDIT_EVENTS = f'#!/bin/sh\nexec {PYTHON} -m tap_audit_events.cli "$@"\n'


@pytest.fixture
def programs(tmp_path: Path) -> str:
    """A search path with the command."""
    program = tmp_path / "bin" / "audit-events"
    program.parent.mkdir()
    program.write_text(AUDIT_EVENTS)
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def environment(command: Command, programs: str) -> dict[str, str]:
    return command.variables(PATH=programs, PYTHONPATH=str(PROJECT))


@pytest.mark.long
def test_the_commands_run_one_after_the_other(
    service: Service, command: Command, programs: str
) -> None:
    service.add(EVENTS)
    outputs = {}
    for each in RUN:
        done = shell(each, command.folder, environment(command, programs))
        assert done.returncode == 0, (each, done.stderr)
        outputs["state" if "--state" in each else each] = done.stdout or done.stderr

    for to in (*FORMATS, "audit.parquet"):
        assert len(exported(command.folder / to)) == len(EVENTS)
    assert outputs["state"].startswith("Nothing new for audit.parquet")
    days = {event["occurredAt"][:10] for event in EVENTS}
    assert len(json.loads(outputs["audit-events count --by day --format json"])) == len(days)
    assert len((command.folder / "actors.csv").read_text().splitlines()) > 2


@pytest.mark.parametrize("line", FOLLOW)
def test_the_commands_that_follow_run_until_ctrl_c(
    line: str, service: Service, command: Command, programs: str
) -> None:
    service.add([an_event(id=f"{n}", actor={"type": "user", "id": "u", "name": "Zoë"})
                 for n in range(10)])  # fmt: skip
    shown = line.replace("jq -r", "jq --unbuffered -r").replace("-n 0", "-n 5")
    with subprocess.Popen(
        ["bash", "-c", shown],
        cwd=command.folder,
        env=environment(command, programs),
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline().decode()
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)

    assert "workspace_create" in first
    assert "Zoë" in first


def test_the_line_of_the_crontab_runs(service: Service, command: Command, programs: str) -> None:
    service.add(EVENTS)
    (line,) = re.findall(r"^7 \* \* \* \* (.+)$", PAGE["Only what is new"].text, re.MULTILINE)
    here = line.replace("/etc/audit-events", ".").replace("/srv/audit", ".")
    (command.folder / "config.json").write_text(json.dumps(command.settings))

    for _ in range(2):
        done = shell(here, command.folder, {"PATH": programs, "PYTHONPATH": str(PROJECT)})
        assert (done.returncode, done.stdout) == (0, "")

    assert len(exported(command.folder / "events")) == len(EVENTS)


def test_the_extra_and_the_variables_of_the_page_are_right() -> None:
    """The extra exists and installs DuckDB, and the variables are those of three settings."""
    install, *variables = PAGE["Install"].commands
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert re.findall(r"\[(\w+)\]", install) == ["duckdb"]
    assert {"pyarrow", "duckdb", "pytz"} == {re.split(r"\W", each)[0] for each in extras["duckdb"]}
    assert [re.match(r"export (\w+)=", each)[1] for each in variables] == [  # type: ignore[index]
        "TAP_AUDIT_EVENTS_BASE_URL",
        "TAP_AUDIT_EVENTS_ORGANIZATION_ID",
        "TAP_AUDIT_EVENTS_ACCESS_TOKEN_FILE",
    ]
