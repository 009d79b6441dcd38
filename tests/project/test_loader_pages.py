"""`docs/loaders.md` and `docs/fields.md` show the findings of `make test-loaders`."""

import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tap_audit_events.events.schema import SCHEMA
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.loaders.fields import EXAMPLE, fields
from tests.loaders.findings import read
from tests.loaders.pipeline import PROJECT
from tests.loaders.report import pages

LOADERS = (PROJECT / "docs" / "loaders.md").read_text()


def test_the_pages_show_the_report() -> None:
    """`make test-loaders UPDATE=1` was run after the last change to their contents."""
    for path, text in pages(read()).items():
        assert path.read_text() == text, path.name


def test_the_example_has_every_field_of_the_schema() -> None:
    """It has no other field, and so each field has exactly one example."""
    assert {each.path[0] for each in fields()} == set(SCHEMA["properties"]) == set(EXAMPLE)
    for name, value in EXAMPLE.items():
        inner = SCHEMA["properties"][name].get("properties")
        if inner is not None:
            assert set(value) == set(inner)


def test_the_page_installs_only_what_was_tested() -> None:
    """Each requirement on the page is in a file from which the pins are generated."""
    tested = {line for file in PROJECT.glob("requirements/*.in") for line in _lines(file)}
    shown = re.findall(r"^\$ pip install (.+)$", LOADERS, re.MULTILINE)

    assert shown
    assert {each for line in shown for each in shlex.split(line)} <= tested


@pytest.mark.parametrize("prefix", ["", "other-"])
def test_the_command_that_removes_batch_files_finds_them(
    service: Service, sync: Sync, tmp_path: Path, prefix: str
) -> None:
    """It finds them with and without a prefix in their names."""
    service.add([an_event(id="1")])
    storage = {"root": str(tmp_path), "prefix": prefix}
    config = {"encoding": {"format": "jsonl"}, "storage": storage}
    sync(batch_config=config).raise_for_exit_code()
    (pattern,) = re.findall(r"^\$ find batches -name '(.+?)' .*-delete$", LOADERS, re.MULTILINE)

    (file,) = tmp_path.iterdir()

    assert fnmatchcase(file.name, pattern)


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines()
