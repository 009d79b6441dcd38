"""The states of several organizations in Python; the state of one organization is accepted too."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.api.run_states import RunStates
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.extraction.run_state import to_run_state
from tap_audit_events.extraction.watermark import Watermark
from tests.extraction.watermarks import at, deliver

IDS = [f"{n:08x}-0000-4000-8000-00000000000{n:x}" for n in range(10, 16)]


def a_state(organization_id: str, second: int) -> dict[str, Any]:
    watermark = Watermark(lookback_seconds=60)
    deliver(watermark, [(f"e{second}", at(second))])
    return to_run_state(watermark, organization_id=organization_id, action_types=[])


@given(runs=st.lists(st.dictionaries(st.sampled_from(IDS), st.integers(0, 59), max_size=4)))
def test_each_organization_keeps_its_newest_state(runs: list[dict[str, int]]) -> None:
    """Runs of other organizations do not change it, and the case of ids does not matter."""
    state: dict[str, Any] = {}
    expected: dict[str, dict[str, Any]] = {}
    for number, run in enumerate(runs):
        states = RunStates(json.loads(json.dumps(state)), as_list=len(run) != 1)
        new = {name: a_state(name, second) for name, second in run.items()}
        upper = number % 2 == 1
        state = states.with_changed({n.upper() if upper else n: s for n, s in new.items()})
        expected |= new
    found = RunStates(state, as_list=True)
    for name in IDS:
        assert found.of(name.upper()) == expected.get(name, {})


def test_a_state_of_one_organization_is_continued() -> None:
    """A run for several organizations continues it, and so does a later run for one of them."""
    one = a_state(IDS[0], 1)
    assert RunStates(one, as_list=True).of(IDS[1]) == {}
    several = RunStates(one, as_list=True).with_changed({IDS[1]: a_state(IDS[1], 2)})
    assert RunStates(several, as_list=True).of(IDS[0]) == one
    assert RunStates(several, as_list=False).of(IDS[0]) == one
    assert RunStates(several, as_list=False).of(IDS[2]) == {}
    assert RunStates(several, as_list=False).with_changed({}) == several


@pytest.mark.parametrize("state", [{"organizations": 1}, {"organizations": [{}]}, {"x": 1}])
@pytest.mark.parametrize("as_list", [True, False])
def test_a_document_of_another_shape_is_refused(state: dict[str, Any], as_list: bool) -> None:
    with pytest.raises(SettingsError):
        RunStates(state, as_list=as_list)
