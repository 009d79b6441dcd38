"""Pytest's settings for mutation testing: only tests of the mutated module, with few examples.

A property is tried with the same examples each time; otherwise its result would depend on chance.
"""

import os
from typing import Final

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.mutation import MODULES, module_of, tests_of

SECONDS_OF_A_MUTANT: Final = 30
SECONDS: Final = 300
"""A test that runs longer fails; a change may make a loop endless."""

settings.register_profile(
    "mutation",
    derandomize=True,
    deadline=None,
    max_examples=12,
    phases=(Phase.explicit, Phase.generate),  # any failing example is enough
)
settings.load_profile("mutation")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Run the tests of the modules in question instead of those that mutmut would run."""
    module = module_of(os.environ.get("MUTANT_UNDER_TEST", ""))
    config.option.timeout = SECONDS_OF_A_MUTANT if module else SECONDS
    modules = [module] if module else os.environ[MODULES].split()
    config.args[:] = dict.fromkeys(file for module in modules for file in tests_of(module))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run property tests last, as examples notice most changes in less time."""
    items.sort(key=lambda item: getattr(getattr(item, "obj", None), "is_hypothesis_test", False))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let hypothesis load what it loads on its first use, once instead of for each mutant."""

    @given(st.lists(st.text() | st.binary() | st.integers() | st.floats() | st.datetimes()))
    def load(_: object) -> None:
        pass

    if session.config.option.collectonly:
        load()
