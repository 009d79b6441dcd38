"""Decides when a run for several organizations gives up those that are not started yet."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Generic, TypeVar

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OrganizationsError,
    ServiceError,
    is_temporary,
)

MAX_FAILURES: Final = 10
"""Organizations in a row for which the service fails, before others are given up."""

_Token = TypeVar("_Token")


class FailuresInARow(Generic[_Token]):
    """Counts organizations in a row for which the service fails, to give up others.

    After `MAX_FAILURES` with different tokens, the service is down, and all others are given up.
    If some of them have the same token, their tokens may be limited, for example for a day: then
    only the other organizations with these tokens are given up.
    """

    def __init__(self, tokens: Collection[_Token]) -> None:
        self._tokens = tokens
        self._failed: list[_Token] = []

    def add(self, token: _Token, error: Exception) -> Collection[_Token]:
        """Count an organization's error; return the tokens whose other organizations are given up.

        An error that is not temporary says nothing about other organizations, and ends the row.
        """
        if not (isinstance(error, ServiceError) and is_temporary(error)):
            self.end()
            return ()
        self._failed.append(token)
        if len(self._failed) % MAX_FAILURES:
            return ()
        failed = set(self._failed)
        return failed if len(failed) < MAX_FAILURES else self._tokens

    def end(self) -> None:
        """End the row, because the service has sent a page."""
        self._failed.clear()


def one_by_one(
    settings: Settings, action: Callable[[Settings], object]
) -> OrganizationsError | None:
    """Call `action` with the settings of one organization after the other.

    Return the errors of the organizations for which it failed; None if it failed for none.
    If there is only one organization, its `ServiceError` is raised.
    """
    failures = FailuresInARow({each.access_token for each in settings.each()})
    errors: dict[str, AuditEventsError] = {}
    given_up: set[str] = set()
    not_started: list[str] = []
    for each in settings.each():
        if each.access_token in given_up:
            not_started.append(each.organization_id)
            continue
        try:
            action(each)
        except ServiceError as error:
            if not settings.organizations:
                raise
            errors[each.organization_id] = error.without_frames()
            given_up.update(failures.add(each.access_token, error))
        else:
            failures.end()
    if not errors:
        return None
    return OrganizationsError(errors, len(settings.organizations), not_started=not_started)
