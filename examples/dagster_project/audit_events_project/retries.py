"""Converts errors of the tap to errors of Dagster."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from tap_audit_events import AuditEventsError, RetryableError

MAX_RETRIES = 5
MAX_SECONDS = 3600.0
AN_HOUR_LATER = ("AE-RETRY-AFTER", "AE-CURSOR-REFUSED")
"""Errors after which a step is retried an hour later.

The service requests a long wait, or refuses cursors, which may have expired.
"""


@contextmanager
def errors_for_dagster(retry_number: int, first_seconds: float) -> Iterator[None]:
    """Retry errors that may pass; end the run at once if somebody has to fix something.

    When an error arrives here, the package has retried the request up to `max_retries` times.

    Args:
        retry_number: the number of retries so far.
        first_seconds: the wait before the first retry; each further wait is twice as long.

    Raises:
        RetryRequested: the service is overloaded, cannot be reached or refuses its cursors.
        Failure: a setting, the token or its owner's rights are wrong, or the service does not
            follow its interface. Its description is one line that says what to do.
    """
    try:
        yield
    except RetryableError as error:
        seconds = first_seconds * 2**retry_number * random.uniform(0.5, 1)  # noqa: S311 - jitter
        seconds = max(seconds, error.retry_after_seconds or 0)
        raise dg.RetryRequested(MAX_RETRIES, min(seconds, MAX_SECONDS)) from error
    except AuditEventsError as error:
        if error.code in AN_HOUR_LATER:
            raise dg.RetryRequested(MAX_RETRIES, MAX_SECONDS) from error
        raise dg.Failure(str(error), allow_retries=False) from error
