"""An error that another process raised has the same text and exit code in this process."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tap_audit_events.errors import exceptions
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OrganizationsError,
    OutputError,
    RetryableError,
    ServiceError,
    SettingsError,
    StoppedError,
    service_error,
)


def of_the_service() -> RetryableError:
    error = service_error("AE-429", details="slow down")
    assert isinstance(error, RetryableError)
    error.window = "2026-01-01 to 2026-02-01"
    error.retry_after_seconds = 10
    return error


ERRORS = [
    of_the_service(),
    *(service_error(code) for code in ("AE-403", "AE-CURSOR-REFUSED", "AE-ENVELOPE")),
    SettingsError(["first", "second"], "AE-FILE"),
    OutputError(),
    OutputError("the disk is full"),
    StoppedError(15),
    OrganizationsError({"org": of_the_service()}, 3, not_started={"other": ("AE-401", "why")}),
    AuditEventsError("AE-DEFECT", " (why)"),
    ServiceError("AE-500", details="why"),
]


def test_every_class_of_errors_is_tried() -> None:
    classes = {each for each in vars(exceptions).values() if isinstance(each, type)}
    errors = {each for each in classes if issubclass(each, AuditEventsError)}
    assert errors == {type(error) for error in ERRORS}


def pickled(error: AuditEventsError) -> Any:
    return pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled here


@pytest.mark.parametrize("way", [pickled, copy.deepcopy, copy.copy])
@pytest.mark.parametrize("error", ERRORS, ids=lambda each: each.code)
def test_an_error_of_another_process_has_the_same_text_and_exit_code(
    error: AuditEventsError, way: Callable[[AuditEventsError], Any]
) -> None:
    """The same holds for a copy."""
    error.__notes__ = ["a note"]

    again = way(error)

    assert type(again) is type(error)
    assert vars(again).keys() == vars(error).keys()
    assert (again.lines, again.exit_code) == (error.lines, error.exit_code)
    assert str(again) == str(error)
    assert again.__notes__ == ["a note"]
    if isinstance(error, RetryableError) and isinstance(again, RetryableError):
        assert again.retry_after_seconds == error.retry_after_seconds
