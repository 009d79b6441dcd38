"""`docs/airbyte.md` is right: its commands run, and its snippet and its table fit the code."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.airbyte.failures import failure_type
from tap_audit_events.errors.catalogue import CATALOGUE, Category
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    SettingsError,
    StoppedError,
    service_error,
)
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.integrations.pipeline import PROJECT
from tests.project.pages import sections, shell

PAGE = (PROJECT / "docs" / "airbyte.md").read_text()
SECTIONS = sections("airbyte.md")


def errors_by_code() -> Iterator[tuple[str, AuditEventsError]]:
    """An error of each code that a TRACE message can have."""
    for code, entry in CATALOGUE.items():
        if code == "AE-ORGANIZATIONS":
            continue  # its type depends on the errors in it
        match entry.category:
            case Category.OUTPUT:
                continue
            case Category.SETTINGS:
                yield code, SettingsError(["x"], code)
            case Category.STOPPED:
                yield code, StoppedError(15)
            case Category.DEFECT:
                yield code, AuditEventsError(code)
            case _:
                yield code, service_error(code)


def test_the_table_of_errors_has_each_code_at_its_failure_type() -> None:
    rows = re.findall(r"^\| `(\w+_error)` \| (.+?) \|", PAGE, re.MULTILINE)
    shown = {kind: re.findall(r"AE-[0-9A-Z-]+", codes) for kind, codes in rows}
    for code, error in errors_by_code():
        kinds = [kind for kind, codes in shown.items() if code in codes]
        # Some errors of settings are of the tap alone.
        assert kinds == [failure_type(error)] or (
            not kinds and CATALOGUE[code].category == Category.SETTINGS
        ), code


def test_the_snippet_is_the_example() -> None:
    """Another test runs the example with the real PyAirbyte."""
    example = (PROJECT / "examples" / "pyairbyte_duckdb.py").read_text()
    (snippet,) = SECTIONS["With PyAirbyte"].files.values()
    assert example.endswith(f'"""\n\n{snippet}')


@pytest.mark.parametrize("command", SECTIONS["On the command line"].commands)
def test_the_commands_of_the_page_run(
    command: str, service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    service.add([an_event()])
    (tmp_path / "config.json").write_text(json.dumps(settings))
    SECTIONS["On the command line"].write_files(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = shell(command, tmp_path, {**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    if "read" in command:
        assert '"RECORD"' in (tmp_path / "messages.jsonl").read_text()
    else:
        assert done.stdout
