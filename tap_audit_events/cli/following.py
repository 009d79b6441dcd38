"""Follows new events: checks again and again, and retries while the service fails."""

from __future__ import annotations

from collections.abc import Callable
from logging import Logger
from typing import Final, TypeVar

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    CursorRefusedError,
    OrganizationsError,
    RetryableError,
    ServiceError,
    SettingsError,
    is_temporary,
)
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.service.retries import MAX_RETRY_AFTER_SECONDS

_Result = TypeVar("_Result")
_LONG_WAIT: Final = "AE-RETRY-AFTER"


def check_can_follow(settings: Settings) -> None:
    """Raise `SettingsError` if the settings have an end, after which no event is read."""
    if settings.end_date is not None:
        raise SettingsError(["--follow has no end: leave out --end, and the setting end_date"])


class Retrying:
    """Retries reading while the service fails, limits requests or refuses cursors.

    Without an interval, events are not followed, and errors are raised at once.
    """

    def __init__(self, stop: Stop, logger: Logger, interval_seconds: float | None) -> None:
        self._stop = stop
        self._logger = logger
        self._interval_seconds = interval_seconds

    def call(self, action: Callable[[], _Result]) -> _Result:
        while True:
            try:
                return action()
            except (ServiceError, OrganizationsError) as error:
                errors = error.errors if isinstance(error, OrganizationsError) else {"": error}
                if self._interval_seconds is None or not all(map(_may_pass, errors.values())):
                    raise
                seconds = max(self._interval_seconds, *map(_requested_seconds, errors.values()))
            for organization_id, each in errors.items():
                problem = f"{organization_id}: {each.summary}" if organization_id else each.summary
                self._logger.warning("%s. Retrying in %.1f s", problem, seconds)
            self._stop.wait(seconds)


def _may_pass(error: AuditEventsError) -> bool:
    """Whether the next requests may succeed; they are sent without the cursors of the last ones."""
    return is_temporary(error) or isinstance(error, CursorRefusedError)


def _requested_seconds(error: AuditEventsError) -> float:
    """How long the service wants no requests, at most 15 minutes."""
    if error.code == _LONG_WAIT:
        return MAX_RETRY_AFTER_SECONDS
    return (error.retry_after_seconds or 0.0) if isinstance(error, RetryableError) else 0.0
