"""An error that another process raised has the same text and exit code in this process."""

import pickle

import pytest

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


@pytest.mark.parametrize("error", ERRORS, ids=lambda each: each.code)
def test_a_pickled_error_has_the_same_text_and_exit_code(error: AuditEventsError) -> None:
    error.__notes__ = ["a note"]
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled here
    assert type(again) is type(error)
    assert vars(again).keys() == vars(error).keys()
    assert (str(again), again.exit_code) == (str(error), error.exit_code)
    assert again.__notes__ == ["a note"]
