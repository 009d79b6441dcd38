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
    "": "cannot be used as a logging configuration: ",
    "- 1": "cannot be used as a logging configuration: ",
    "text": "cannot be used as a logging configuration: ",
    "a: [": "it is not YAML at line 1, column 5",
    "a: b: c": "it is not YAML at line 1, column 5",
    "\x01": "unacceptable character",
    "!!python/object:os.system {}": "it is not YAML at line 1, column 1",
    "[" * 100_000: "maximum recursion depth exceeded",
    "!!int ''": "cannot be used as a logging configuration: ",
    "!!timestamp x": "cannot be used as a logging configuration: ",
    "{}": 'cannot be used as a logging configuration: "dictionary doesn\'t specify a version"',
    "version: 2": "cannot be used as a logging configuration: 'Unsupported version: 2'",
    "{version: 1, handlers: 5}": "cannot be used as a logging configuration: ",
    "{version: 1, handlers: {h: {class: no.such.Handler}}}": "Cannot resolve 'no.such.Handler'",
    "{version: 1, handlers: {h: {class: logging.FileHandler, filename: /no/file}}}": (
        "Unable to configure handler 'h'"
    ),
    "{version: 1, formatters: {f: {(): builtins.nothing}}}": "Unable to configure formatter 'f'",
    "{version: 1, root: {level: LOUD}}": "Unable to configure root logger",
}
QUICK = ("", "a: [", "!!int ''", "version: 2")
"""One text of each kind. Each test starts an interpreter, so the others are long tests."""


def error_with(path: object) -> str:
    done = run(None, "--about", environment={"SINGER_SDK_LOG_CONFIG": str(path)})
    line = only_error(done)
    assert line.startswith("AE-SETTINGS: The file '")
    assert "that SINGER_SDK_LOG_CONFIG names " in line
    assert done.stdout == b""
    assert len(line) < 1000
    return line


@pytest.mark.parametrize(
    "text",
    [
        *QUICK,
        *(pytest.param(each, marks=pytest.mark.long) for each in UNUSABLE if each not in QUICK),
    ],
    ids=lambda text: text[:30] or "empty",
)
def test_a_file_that_cannot_be_used_is_one_line(text: str, tmp_path: Path) -> None:
    """The error names the mistake and its place, without a traceback."""
    path = tmp_path / "log.yaml"
    path.write_text(text)
    assert UNUSABLE[text] in error_with(path)


def test_text_that_is_not_unicode_is_one_line(tmp_path: Path) -> None:
    """It is reported like any other text that is not YAML."""
    path = tmp_path / "log.yaml"
    path.write_bytes(b"version: \xff\xfe")
    assert "'utf-8' codec can't decode byte 0xff" in error_with(path)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/no/such/file.yaml", "No such file or directory"),
        ("/dev/zero", "unacceptable character"),
        pytest.param("/", "Is a directory", marks=pytest.mark.long),
        pytest.param("x" * 5000, "File name too long", marks=pytest.mark.long),
    ],
)
def test_a_path_that_cannot_be_read_is_one_line(path: str, problem: str) -> None:
    """A device without an end is an error too."""
    assert problem in error_with(path)


def test_a_token_in_the_wrong_place_is_not_shown(tmp_path: Path) -> None:
    """It may be the path, or stand in the file."""
    assert TOKEN not in error_with(TOKEN)
    path = tmp_path / "log.yaml"
    path.write_text(f"{TOKEN}: [")
    assert TOKEN not in error_with(path)


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
    assert ", own | Done: 1 events" in done.log
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
