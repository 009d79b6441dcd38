"""The files that `make mutate` reads fit the code."""

import tomllib

import pytest

from tests.integrations.pipeline import PROJECT
from tests.mutation import TESTS_OF, module_of

ENTRIES = tomllib.loads((PROJECT / "tests/mutation/equivalent.toml").read_text())["mutants"]


def test_every_equivalent_mutant_changes_a_line_that_exists() -> None:
    """An entry for other code would be useless, or allow a change that nobody has checked."""
    missing = [
        (entry["function"], entry["before"])
        for entry in ENTRIES
        if " ".join(entry["before"].split()) not in source_of(entry["function"])
    ]
    assert missing == []


@pytest.mark.parametrize("module", TESTS_OF)
def test_the_module_of_a_mutant_is_found(module: str) -> None:
    """Without its module, and so its tests, a mutant would count as noticed."""
    assert module_of(f"tap_audit_events.{module}.xǁPlanǁaccept__mutmut_1") == module


def source_of(function: str) -> str:
    """Return the source of a function's module, with white space reduced to single spaces."""
    path = PROJECT / "tap_audit_events" / function.replace(".", "/")
    files = (folder.with_suffix(".py") for folder in path.parents)
    return " ".join(next(file for file in files if file.is_file()).read_text().split())
