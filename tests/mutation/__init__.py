"""Mutation testing: which small mistakes in the code no test would notice."""

from pathlib import Path
from typing import Final

MODULES: Final = "MUTATION_MODULES"
"""The environment variable that names the modules in question, separated by spaces."""


def tests_of(module: str) -> list[str]:
    """The test files that are named after a module, or all tests of its folder."""
    folder, _, name = module.replace(".", "/").rpartition("/")
    return sorted(map(str, Path("tests", folder).glob(f"test_{name}*.py"))) or [f"tests/{folder}"]


def module_of(mutant: str) -> str:
    """The module of a mutant in mutmut, such as ``events.window``; empty if the name is empty."""
    return mutant.partition("tap_audit_events.")[2].rpartition(".")[0]
