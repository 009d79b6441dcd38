"""What a user decides about OCSF events: the vendor's name, and which action is which activity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from tap_audit_events.errors.exceptions import SettingsError, sanitize

UNKNOWN, OTHER = 0, 99

ACTIVITIES: Final = {
    UNKNOWN: "Unknown",
    1: "Create",
    2: "Read",
    3: "Update",
    4: "Delete",
    OTHER: "Other",
}
"""The activities of the class API Activity of OCSF, and their captions."""

_DOCUMENTED: Final = {"workspace_create": 1}
"""The action types whose activity interface.md 2.2 shows; no other one is guessed."""

_IDS: Final = {caption.lower(): number for number, caption in ACTIVITIES.items()}


@dataclass(frozen=True)
class OcsfMapping:
    """What OCSF events say that the service's events do not.

    Args:
        vendor_name: the vendor of the product that records the events.
        product_name: the name of that product.
        activities: the activity of action types: ``create``, ``read``, ``update``, ``delete``,
            ``other``, or its number in OCSF. An action type that is not in it is ``other``, except
            for ``workspace_create``.

    Raises:
        SettingsError: an activity is unknown, or a name is empty.
    """

    vendor_name: str = "Unknown"
    product_name: str = "Audit Events"
    activities: Mapping[str, str | int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise `SettingsError` if a value cannot be used."""
        problems = [
            f"The {name} of OCSF events must be a text of printable characters, and not be empty"
            for name in ("vendor_name", "product_name")
            if not getattr(self, name).isprintable() or not getattr(self, name)
        ]
        if problems := problems + activity_problems(self.activities):
            raise SettingsError(problems)

    @cached_property
    def activity_ids(self) -> dict[str, int]:
        """The number of the activity of action types; `OTHER` for all that are not in it."""
        ids = {name: _id_of(activity) for name, activity in self.activities.items()}
        return _DOCUMENTED | {name: number for name, number in ids.items() if number is not None}


def activity_problems(activities: Mapping[str, Any]) -> list[str]:
    """A sentence for each action type that has no known activity."""
    return [
        f"The activity of the action type {sanitize(action_type)} is {sanitize(activity)}, but must"
        f" be one of {', '.join(_IDS)}, or one of {', '.join(map(str, ACTIVITIES))}"
        for action_type, activity in activities.items()
        if _id_of(activity) is None
    ]


def _id_of(activity: Any) -> int | None:
    """The number of an activity; None if there is no such activity."""
    if isinstance(activity, str):
        return _IDS.get(activity.lower())
    is_number = isinstance(activity, int) and not isinstance(activity, bool)
    return activity if is_number and activity in ACTIVITIES else None
