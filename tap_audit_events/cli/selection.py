"""What an export writes of the events that it reads; the state of its output remembers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from tap_audit_events.api.event_page import EventPage, some_of
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.event_filter import EventFilter


class Selection(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is written of the events. It must be the same in all exports into one output.

    The state of each organization, as the output stores it, has these fields as further keys. A
    field with its default value is absent.

    Attributes:
        filters: which events are written; None for all.
        form: the value of ``--as``; None for events as the service sent them.
    """

    filters: EventFilter | None = None
    form: str | None = msgspec.field(name="as", default=None)

    def of(self, page: EventPage) -> EventPage:
        """What is written of a page; its state is the one that the output stores."""
        if self == Selection():
            return page
        every = range(len(page))
        positions = self.filters.positions(page.raw) if self.filters else every
        return some_of(page, positions, self.added_to)

    def continued(self, stored: Mapping[str, Any], name: str) -> dict[str, Any]:
        """The state to continue from, as `AuditEvents.pages` accepts it.

        Args:
            stored: the state that the output has; empty for the first export.
            name: what messages call the output.

        Raises:
            SettingsError: earlier exports into the output had another selection.
        """

        def checked(state: Mapping[str, Any]) -> dict[str, Any]:
            keys = {key: state[key] for key in _KEYS & state.keys()}
            if keys != _as_json(self):
                raise _refused(name, _options(keys), _options(_as_json(self)))
            return {key: value for key, value in state.items() if key not in _KEYS}

        return _each(checked, stored)

    def added_to(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """A state of `AuditEvents.pages`, as the output stores it."""
        return _each(lambda each: {**each, **_as_json(self)}, state)


def matching(page: EventPage, filters: EventFilter) -> EventPage:
    """The events of a page that match.

    Raises:
        ContractError: an event is nested too deeply to be read.
    """
    if not filters:
        return page
    return some_of(page, filters.positions(page.raw), dict)


_KEYS: Final = frozenset(Selection.__struct_encode_fields__)


def _each(change: Callable[[Any], dict[str, Any]], state: Mapping[str, Any]) -> dict[str, Any]:
    """A state with a change to that of each organization: some outputs store them one by one."""
    match state:
        case {"organizations": [*states]} if all(isinstance(each, dict) for each in states):
            return {**state, "organizations": list(map(change, states))}
        case {"organizations": _}:  # changed by hand; `AuditEvents.pages` refuses it
            return dict(state)
    return change(state) if state else {}


def _as_json(selection: Selection) -> Any:
    return msgspec.json.decode(msgspec.json.encode(selection))


def _options(keys: Mapping[str, Any]) -> str:
    """A selection as the options of the command line; empty if nothing is selected."""
    try:
        selection = msgspec.convert(keys, Selection)
    except msgspec.ValidationError:
        return "options that this version does not know"
    filters = selection.filters or EventFilter()
    parts = [f"--actor {each}" for each in filters.actor]
    parts += [f"--entity {each}" for each in filters.entity]
    parts += [f"--as {selection.form}"] if selection.form else []
    return sanitize(" ".join(parts)) if parts else ""


def _refused(name: str, before: str, now: str) -> SettingsError:
    if not before:
        difference = f"without {now}"
    elif not now:
        difference = f"with {before}, which this run lacks"
    else:
        difference = f"with {before}, not with {now}"
    problem = (
        f"The last run to {sanitize(name)} was {difference}. Use the same options again, or"
        " start anew with another output (for a receiver: with another state file)"
    )
    return SettingsError([problem], "AE-STATE")
