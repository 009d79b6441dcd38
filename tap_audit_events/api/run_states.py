"""The states of the organizations of a run, as Python, `audit-events` and Airbyte store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tap_audit_events.config.settings import Settings
from tap_audit_events.extraction.run_state import is_run_state, unusable

_ORGANIZATIONS: Final = "organizations"


class RunStates:
    """The states of the organizations of a run.

    The state of one organization is what `to_run_state` returns. The state of several is a list of
    such states: ``{"organizations": [...]}``. Each kind of run accepts both forms, and keeps the
    states of organizations that it does not read. The state of a first run is empty.

    Raises:
        SettingsError: `state` has neither form.
    """

    def __init__(self, state: Mapping[str, Any], *, as_list: bool) -> None:
        self._as_list = as_list
        if not isinstance(state, Mapping):
            raise unusable("it is not an object, such as an earlier run returned")
        if "bookmarks" in state:
            raise unusable("it is a Singer state: give the state of a page, page.state")
        each = state.get(_ORGANIZATIONS, [state] if state else [])
        if not isinstance(each, list) or not all(map(is_run_state, each)):
            raise unusable("its watermark is not as this tap writes it")
        self._states = {one["organization_id"].lower(): dict(one) for one in each}
        is_of_one = not as_list and _ORGANIZATIONS not in state
        self._only = dict(state) if is_of_one else {}

    def of(self, organization_id: str) -> dict[str, Any]:
        """The state of an organization, empty if it has none.

        A state of one other organization is returned too, so that `from_run_state` refuses it.
        """
        return self._states.get(organization_id.lower(), self._only)

    def of_all(self, settings: Settings) -> dict[str, Mapping[str, Any]]:
        """The state of each organization of a run."""
        return {each.organization_id: self.of(each.organization_id) for each in settings.each()}

    def with_changed(self, changed: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The state of the run, with the new states of organizations that it reads."""
        new = {name.lower(): dict(state) for name, state in changed.items() if state}
        states = list({**self._states, **new}.values())
        if self._as_list or len(states) > 1:
            return {_ORGANIZATIONS: states}
        return states[0] if states else {}
