"""What `make mutate` reads."""

import tomllib

import pytest

from tests.integrations.pipeline import PROJECT
from tests.mutation import TESTS_OF, module_of

ENTRIES = tomllib.loads((PROJECT / "tests/mutation/equivalent.toml").read_text())["mutants"]


def test_every_change_that_no_test_has_to_notice_is_of_a_line_that_exists() -> None:
    """An entry for other code would say nothing, or allow what nobody has looked at."""
    missing = [
        (entry["function"], entry["before"])
        for entry in ENTRIES
        if " ".join(entry["before"].split()) not in source_of(entry["function"])
    ]
    assert missing == []


@pytest.mark.parametrize("module", TESTS_OF)
def test_the_module_of_a_mutant_is_found(module: str) -> None:
    """Also in a folder of a folder: without its tests, a mutant would count as noticed."""
    assert module_of(f"tap_audit_events.{module}.xǁPlanǁaccept__mutmut_1") == module


def source_of(function: str) -> str:
    """The module of a function, with a space for each run of white space."""
    path = PROJECT / "tap_audit_events" / function.replace(".", "/")
    files = (folder.with_suffix(".py") for folder in path.parents)
    return " ".join(next(file for file in files if file.is_file()).read_text().split())
