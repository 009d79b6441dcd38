"""The states that follow the pages of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tap_audit_events.api.run_states import RunStates


class PageStates:
    """What the run has changed so far in the states of its organizations.

    The states of several pages share what they have in common, so that a list of pages grows with
    their number, however many organizations there are; and if only the last page is kept, only the
    last states of organizations are.

    Args:
        states: the states before the run.
    """

    def __init__(self, states: RunStates) -> None:
        self._states = states
        self._newest: dict[str, _OneState] = {}
        self._base: Mapping[str, _OneState] = {}
        self._since_base: list[_OneState] = []

    def change(self, organization_id: str, make: Callable[[], Mapping[str, Any]]) -> PageState:
        """The state after an organization's own has become what `make` returns, now or later."""
        state = _OneState(organization_id, make)
        self._newest[organization_id] = state
        self._since_base.append(state)
        if len(self._since_base) > len(self._newest):  # so that each page pays for one entry
            self._base, self._since_base = self._newest.copy(), []
        return PageState(self._states, self._base, self._since_base, len(self._since_base), state)


class _OneState:
    """The state of one organization. It becomes JSON, which is smaller, when it is first used."""

    def __init__(self, organization_id: str, make: Callable[[], Mapping[str, Any]]) -> None:
        self.organization_id = organization_id
        self._make: Callable[[], Mapping[str, Any]] | None = make
        self._json: dict[str, Any] = {}

    @property
    def json(self) -> dict[str, Any]:
        make = self._make  # another thread may be here too
        if make is not None:
            self._json = dict(make())
            self._make = None
        return self._json


class PageState(NamedTuple):
    """The state after a page; later pages do not change it.

    Attributes:
        states: the states before the run.
        base: states of organizations at an earlier page.
        since_base: those that followed, also of later pages.
        reached: how many of `since_base` belong to this page and earlier ones.
        last: that of the page's organization.
    """

    states: RunStates
    base: Mapping[str, _OneState]
    since_base: Sequence[_OneState]
    reached: int
    last: _OneState

    def of_run(self) -> dict[str, Any]:
        """The state for the next run."""
        newest = {name: each.json for name, each in self.base.items()}
        newest |= {each.organization_id: each.json for each in self.since_base[: self.reached]}
        return self.states.with_changed(newest)

    def of_organization(self) -> dict[str, Any]:
        """The state for the next run of the page's organization."""
        return self.last.json
