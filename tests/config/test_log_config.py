"""The file that SINGER_SDK_LOG_CONFIG names sets up logging, or ends the run with one line."""

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
from tests.running import run

TOKEN = "acme_pat_in-the-wrong-place7x2"

A_CONFIG = """
version: 1
formatters:
  plain: {format: "{asctime} | {levelname} | {name}, own | {message}", style: "{"}
handlers:
  stderr: {class: logging.StreamHandler, formatter: plain}
root: {level: INFO, handlers: [stderr]}
"""

UNUSABLE = {
    "a: [": "it is not YAML at line 1, column 5",
    "!!int ''": "cannot be used as a logging configuration: ",
    "version: 2": "cannot be used as a logging configuration: 'Unsupported version: 2'",
    "{version: 1, handlers: {h: {class: no.such.Handler}}}": "Cannot resolve 'no.such.Handler'",
    f"{TOKEN}: [": "it is not YAML at line 1",
}


def error_with(path: object) -> str:
    done = run(None, "--about", environment={"SINGER_SDK_LOG_CONFIG": str(path)})
    line = only_error(done)
    assert line.startswith("AE-SETTINGS: The file '")
    assert "that SINGER_SDK_LOG_CONFIG names " in line
    assert TOKEN not in line
    return line


@pytest.mark.parametrize("text", UNUSABLE)
def test_a_file_that_cannot_be_used_is_one_line(text: str, tmp_path: Path) -> None:
    """The error names the mistake and its place, without a traceback and the text of the file."""
    path = tmp_path / "log.yaml"
    path.write_text(text)
    assert UNUSABLE[text] in error_with(path)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/no/such/file.yaml", "No such file or directory"),
        ("/dev/zero", "unacceptable character"),
        (TOKEN, "No such file or directory"),
    ],
)
def test_a_path_that_cannot_be_read_is_one_line(path: str, problem: str) -> None:
    """A device without an end is an error too."""
    assert problem in error_with(path)


def test_an_empty_path_counts_as_unset(service: Service, sync: Sync) -> None:
    """The run behaves as if the variable were not set."""
    done = sync(environment={"SINGER_SDK_LOG_CONFIG": ""}).raise_for_exit_code()
    assert "Done: " in done.log


def test_the_tap_logs_although_the_file_disables_other_loggers(
    service: Service, sync: Sync, tmp_path: Path
) -> None:
    """`disable_existing_loggers` is true by default; this must not hide errors."""
    (tmp_path / "log.yaml").write_text(A_CONFIG)
    service.add([an_event()])
    environment = {"SINGER_SDK_LOG_CONFIG": str(tmp_path / "log.yaml")}
    done = sync(environment=environment).raise_for_exit_code()
    assert ", own | Done: 1 event delivered" in done.log
    failed = sync(page_size=0, environment=environment)
    assert only_error(failed).startswith("AE-SETTINGS: page_size ")


def test_the_file_may_be_a_pipe(settings: dict[str, Any], tmp_path: Path) -> None:
    """A pipe, such as `<(…)` in a shell, can be read only once."""
    (tmp_path / "log.yaml").write_text(A_CONFIG)
    command = (
        'SINGER_SDK_LOG_CONFIG=<(cat log.yaml) exec "$PYTHON" -m tap_audit_events --config ENV'
    )
    names = {f"TAP_AUDIT_EVENTS_{name.upper()}": value for name, value in settings.items()}
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, **names, "PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert ", own | Done: " in done.stderr
