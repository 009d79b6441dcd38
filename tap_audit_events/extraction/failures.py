"""Decides when a run for several organizations gives up those that are not started yet."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Generic, TypeVar

from tap_audit_events.errors.exceptions import ServiceError, is_temporary

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
