"""The environment of a run: streams, files and variables of the machine."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.running import Run, run
from tests.singer.test_complete import TEN_EVENTS
from tests.singer.test_incremental import state_of


def run_in_shell(settings: dict[str, Any], folder: Path, command: str, **more: str) -> Run:
    """Run `command`; in it, TAP is replaced by the tap with its settings."""
    (folder / "config.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [
            "bash",
            "-c",
            command.replace("TAP", '"$PYTHON" -m tap_audit_events --config config.json'),
        ],
        env={**os.environ, "PYTHON": sys.executable, **more},
        cwd=folder,
        capture_output=True,
        check=False,
    )
    ended = Run(done.stdout, done.stderr.decode(), done.returncode)
    ended.check_discreet([settings["access_token"]])
    return ended


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("TAP >/dev/full", "No space left"),
        ("TAP >&-", "it is closed"),
        ("TAP 1</dev/null", "Bad file descriptor"),
        ("TAP --about 1</dev/null", "Bad file descriptor"),
    ],
)
def test_a_stdout_that_cannot_be_written_is_one_line(
    command: str, reason: str, service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """The error has the system's reason and exit code 1, without a traceback."""
    service.add(TEN_EVENTS)
    line = only_error(run_in_shell(settings, tmp_path, command))
    assert line.startswith("AE-OUTPUT: The tap cannot write to stdout: ")
    assert reason in line


def test_a_state_from_a_closed_stdin_is_one_line(settings: dict[str, Any], tmp_path: Path) -> None:
    """`--state -` reads stdin, which may be closed."""
    assert "stdin is closed" in only_error(run_in_shell(settings, tmp_path, "TAP --state - <&-"))


def test_a_state_is_read_from_stdin(
    service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """With `--state -`, as in pipelines, the state may begin with a byte order mark."""
    service.add(TEN_EVENTS)
    (tmp_path / "s.json").write_text("\ufeff" + json.dumps(state_of("2024-05-06T08:00:09Z")))
    done = run_in_shell(settings | {"lookback_seconds": 0}, tmp_path, "TAP --state - <s.json")
    assert done.raise_for_exit_code().ids == ["08:00:09"]


@pytest.mark.parametrize("bundle", ["/nowhere/at/all.pem", __file__, "/proc/self/mem"])
def test_an_unusable_ca_bundle_is_named(
    bundle: str, settings: dict[str, Any], untrusted_address: str
) -> None:
    """A user who follows AE-CERTIFICATE may name a wrong bundle. The error is not retried."""
    https = {"base_url": untrusted_address, "max_retries": 3}
    done = run(settings | https, environment={"REQUESTS_CA_BUNDLE": bundle})
    assert only_error(done).startswith("AE-CERTIFICATE: ")


@pytest.mark.parametrize("proxy", ["http://", "nonsense://proxy", "http://[bad"])
def test_an_unusable_proxy_is_named(proxy: str, settings: dict[str, Any]) -> None:
    """Nothing can be sent to such a proxy, so there is no retry."""
    https = {"base_url": "https://localhost:9", "max_retries": 3}
    done = run(settings | https, environment={"HTTPS_PROXY": proxy, "NO_PROXY": "", "no_proxy": ""})
    assert only_error(done).startswith("AE-ADDRESS: ")


def test_a_socks_proxy_without_its_library_names_the_library(settings: dict[str, Any]) -> None:
    """The URL of the proxy is correct, so advice to check it would not help."""
    https = {"base_url": "https://localhost:9", "max_retries": 3}
    environment = {"HTTPS_PROXY": "socks5://localhost:9", "NO_PROXY": "", "no_proxy": ""}
    line = only_error(run(settings | https, environment=environment))
    assert line.startswith("AE-ADDRESS: ")
    assert "a SOCKS proxy needs the package PySocks" in line


@pytest.mark.parametrize("name", ["LOGLEVEL", "TAP_AUDIT_EVENTS_LOGLEVEL"])
def test_an_unknown_log_level_is_one_line(name: str) -> None:
    """It is reported even though logging is not set up yet."""
    done = run(None, "--version", environment={name: "LOUD"})
    assert done.exit_code == 1
    (line,) = done.errors
    expected = "is not a log level: set it to DEBUG, INFO, WARNING or ERROR"
    assert line == f"AE-SETTINGS: {name} {expected}"


@pytest.mark.parametrize("name", ["LOGLEVEL", "TAP_AUDIT_EVENTS_LOGLEVEL"])
def test_an_empty_log_level_counts_as_unset(name: str, service: Service, sync: Sync) -> None:
    """Compose files and CI set it like this if they pass on a variable that is not set."""
    service.add(TEN_EVENTS)
    done = sync(environment={name: ""}).raise_for_exit_code()
    assert len(done.ids) == 10
    assert "| INFO " in done.log


@pytest.mark.parametrize("name", ["START", "startdate"])
def test_a_misspelt_variable_is_an_error(name: str, service: Service, sync: Sync) -> None:
    """Otherwise the run would read everything."""
    given = {f"TAP_AUDIT_EVENTS_{name}": "2026-01-31T00:00:00Z"}
    assert only_error(sync("--config", "ENV", environment=given)) == (
        f"AE-SETTINGS: 'TAP_AUDIT_EVENTS_{name}' is not a setting: did you mean"
        " TAP_AUDIT_EVENTS_START_DATE?"
    )
    assert service.requests == []


def test_variables_of_other_programs_do_not_end_a_run(sync: Sync) -> None:
    """Kubernetes sets the first two for a service of the tap's name, Meltano the third."""
    names = ("PORT", "PORT_80_TCP_ADDR", "_SELECT")
    given = {f"TAP_AUDIT_EVENTS_{name}": "5" for name in names}
    done = sync("--config", "ENV", environment=given).raise_for_exit_code()
    assert done.warnings == [
        f"'TAP_AUDIT_EVENTS_{name}' is not a setting and is ignored" for name in names[:2]
    ]


def test_the_name_of_a_variable_may_be_in_lower_case(service: Service, sync: Sync) -> None:
    """A variable that somebody has set is never silently ignored; upper case takes precedence."""
    service.add([an_event(at="2024-05-06T08:00:00Z")])
    given = {"TAP_AUDIT_EVENTS_start_date": "2024-05-07T00:00:00Z"}
    assert sync("--config", "ENV", environment=given).raise_for_exit_code().ids == []
    given["TAP_AUDIT_EVENTS_START_DATE"] = "2024-05-06T00:00:00Z"
    assert len(sync("--config", "ENV", environment=given).ids) == 1


def test_a_path_cannot_forge_a_log_line(settings: dict[str, Any]) -> None:
    """A line break in a file's name is escaped."""
    assert "'/x\\nERROR | y'" in only_error(run(settings, "--state", "/x\nERROR | y"))


def test_times_in_the_log_are_short(service: Service, sync: Sync) -> None:
    """A long fraction is delivered whole, but cut in log lines."""
    time = f"2024-05-06T08:00:00.{'1' * 79}Z"
    service.add([an_event(at=time)])
    done = sync().raise_for_exit_code()
    assert done.records[0]["occurredAt"] == time
    assert "1" * 30 not in done.log
