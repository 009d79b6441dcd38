"""The modules that `make mutate` names exist."""

import pytest

from tests.mutation import TESTS_OF, module_of


@pytest.mark.parametrize("module", TESTS_OF)
def test_the_module_of_a_mutant_is_found(module: str) -> None:
    """Without its module, and so its tests, a mutant would count as noticed."""
    assert module_of(f"tap_audit_events.{module}.xǁPlanǁaccept__mutmut_1") == module
