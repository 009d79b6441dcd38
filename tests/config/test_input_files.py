"""Files on the command line: what is wrong with one is said in one line, with its path."""

import json
import tracemalloc
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
    """Config, state and catalog files alike; the error names the position of the mistake."""
    documents: dict[str, Any] = {"config": GOOD, kind: document}
    done = run(documents["config"], state=documents.get("state"), catalog=documents.get("catalog"))
    assert done.exit_code == 1
    (line,) = done.errors
    assert line.startswith(f"AE-FILE: The {kind} file ")
    assert problem in line
    assert TOKEN not in done.log


def test_an_unusable_state_file_says_which_state_is_needed() -> None:
    """A target that has stored nothing prints no state; otherwise it may print several."""
    hint = "leave out --state for a first run, or give the last state of an earlier run"
    assert only_error(run(GOOD, state="")).endswith(f" is empty: {hint}")
    several = only_error(run(GOOD, state="{}\n{}\n"))
    assert several.endswith(f" is not JSON: Extra data at line 2, column 1: {hint}")
    missing = only_error(run(GOOD, "--state", "state.json"))
    assert missing.endswith(f" cannot be read: No such file or directory: {hint}")


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    """PowerShell writes UTF-16, of which "not JSON" would say nothing."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GOOD), "utf-16")
    done = run(GOOD, "--config", str(path))
    assert only_error(done) == f"AE-FILE: The config file '{path}' is not UTF-8: save it as UTF-8"


@pytest.mark.parametrize("option", ["--config", "--catalog"])
def test_a_missing_file_is_named(option: str) -> None:
    """A wrong path is a one-line error."""
    done = run(GOOD, option, "/nowhere/at/all.json")
    assert done.exit_code == 1
    place = f"The {option[2:]} file '/nowhere/at/all.json'"
    assert done.errors == [f"AE-FILE: {place} cannot be read: No such file or directory"]


@pytest.mark.parametrize("option", ["--config", "--state", "--catalog"])
def test_an_empty_path_is_not_the_working_directory(option: str) -> None:
    """A script passes one if its variable is not set."""
    line = only_error(run(GOOD, option, ""))
    assert line.startswith(f"AE-FILE: The {option[2:]} file '' cannot be read: the path is empty")


@pytest.mark.parametrize("option", ["--config", "--state", "--catalog"])
def test_a_url_is_not_a_path(option: str) -> None:
    """A store may have been meant; a password in its URL is not shown."""
    line = only_error(run(GOOD, option, "s3://key:secret@bucket/a.json"))
    assert line == f"AE-FILE: The {option[2:]} must be the path of a file, not a URL"


@pytest.mark.parametrize("option", ["--config", "--state", "--catalog"])
def test_a_file_without_end_is_refused(option: str) -> None:
    """A file is read up to a bound, so a device cannot fill the memory."""
    done = run(GOOD, option, "/dev/zero", most_kilobytes=1_000_000)
    assert only_error(done) == (f"AE-FILE: The {option[2:]} file '/dev/zero' is larger than 256 MB")


def test_a_small_file_needs_little_memory(tmp_path: Path) -> None:
    """The bound is not reserved: `ulimit -v` may allow the tap less than that."""
    path = tmp_path / "config.json"
    path.write_text("{}")
    tracemalloc.start()
    try:
        assert read_json_file("config", str(path)) == {}
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_the_state_of_many_busy_organizations_is_read(tmp_path: Path) -> None:
    """The tap reads each state that it writes: 100 organizations may have so many ids."""
    digests = "A" * (MAX_REMEMBERED_IDS * DIGEST_BYTES * 4 // 3)
    state = {"bookmarks": {"audit_events": {"partitions": [digests] * 100}}}
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state))
    assert read_json_file("state", str(path)) == state
