"""Files on the command line: a mistake in one is an error of one line, which names the path."""

import json
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.config.input_files import read_json_file
from tap_audit_events.extraction.id_groups import DIGEST_BYTES
from tap_audit_events.extraction.watermark import MAX_REMEMBERED_IDS
from tests.config.test_settings import GOOD, TOKEN
from tests.errors.test_errors import only_error
from tests.running import run


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("", "is empty: "),
        ("\n", "is empty: "),
        ("{", "is not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        ("[1]", "must contain a JSON object"),
        (json.dumps(TOKEN), "must contain a JSON object"),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
@pytest.mark.parametrize("kind", ["config", "state", "catalog"])
def test_a_file_without_a_json_object_is_refused(kind: str, document: str, problem: str) -> None:
    """This holds for config, state and catalog files; the error names the mistake and its place."""
    documents: dict[str, Any] = {"config": GOOD, kind: document}
    done = run(documents["config"], state=documents.get("state"), catalog=documents.get("catalog"))
    assert done.exit_code == 1
    (line,) = done.errors
    assert line.startswith(f"AE-FILE: The {kind} file ")
    assert problem in line
    assert TOKEN not in done.log


def test_an_unusable_state_file_says_which_state_is_needed() -> None:
    """A target prints no state if it has stored nothing, and may otherwise print several."""
    hint = "leave out --state for a first run, or give the last state of an earlier run"
    assert only_error(run(GOOD, state="")).endswith(f" is empty: {hint}")
    several = only_error(run(GOOD, state="{}\n{}\n"))
    assert several.endswith(f" is not JSON: Extra data at line 2, column 1: {hint}")


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    """PowerShell writes UTF-16. For such a file, the error "not JSON" would not help."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GOOD), "utf-16")
    done = run(GOOD, "--config", str(path))
    assert only_error(done) == f"AE-FILE: The config file '{path}' is not UTF-8: save it as UTF-8"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/nowhere/at/all.json", "file '/nowhere/at/all.json' cannot be read: No such file or dir"),
        ("", "file '' cannot be read: the path is empty"),
        ("s3://key:secret@bucket/a.json", "must be the path of a file, not a URL"),
    ],
)
@pytest.mark.parametrize("option", ["--config", "--state", "--catalog"])
def test_a_path_that_is_not_a_file_is_named(option: str, path: str, problem: str) -> None:
    """An empty path is not the working directory, and a password in a URL is not shown."""
    line = only_error(run(GOOD, option, path))
    assert line.startswith(f"AE-FILE: The {option[2:]} {problem}")
    assert "secret" not in line


@pytest.mark.parametrize("option", ["--config", "--state", "--catalog"])
def test_a_file_without_end_is_refused(option: str) -> None:
    """A file is read only up to a bound, so a device cannot fill the memory."""
    done = run(GOOD, option, "/dev/zero", most_kilobytes=1_000_000)
    assert only_error(done) == (f"AE-FILE: The {option[2:]} file '/dev/zero' is larger than 256 MB")


def test_the_state_of_many_busy_organizations_is_read(tmp_path: Path) -> None:
    """The tap must read each state that it writes: 100 organizations may have so many ids."""
    digests = "A" * (MAX_REMEMBERED_IDS * DIGEST_BYTES * 4 // 3)
    state = {"bookmarks": {"audit_events": {"partitions": [digests] * 100}}}
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state))
    assert read_json_file("state", str(path)) == state
