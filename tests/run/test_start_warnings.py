"""Warnings of events that earlier runs left out."""

from typing import Any

import pytest

from tap_audit_events.config.settings import read_settings
from tap_audit_events.run.start_warnings import types_no_longer_excluded
from tests.fuzzing.checks import GOOD


@pytest.mark.parametrize(
    ("earlier", "settings", "expected"),
    [
        (None, {}, []),
        (["a", "b"], {}, ["a", "b"]),
        (["a", "b"], {"exclude_action_types": ["b", "c"]}, ["a"]),
        (["a"], {"exclude_action_types": ["a"]}, []),
        (["a", "b"], {"action_types": ["b"]}, ["b"]),
        (["a"], {"action_types": ["b"]}, []),
    ],
)
def test_types_that_are_excluded_no_longer(
    earlier: list[str] | None, settings: dict[str, Any], expected: list[str]
) -> None:
    """Only types that this run reads: of the others, nothing is expected."""
    state = {} if earlier is None else {"exclude_action_types": earlier}
    assert types_no_longer_excluded(state, read_settings(GOOD | settings)) == expected
