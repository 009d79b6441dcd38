"""Errors of `AuditEvents.pages` are raised after the pages before them, and at each further use."""

from typing import Any

import pytest

from tap_audit_events import (
    AuditEvents,
    AuditEventsError,
    ContractError,
    EventPage,
    RefusedError,
    RetryableError,
    ServiceError,
)
from tap_audit_events.sandbox import Service
from tests.api.logs import events


@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        ("status:code=403@3", RefusedError, "AE-403"),
        ("status:code=503@3-", RetryableError, "AE-500"),
        ("body:text=%7B%22auditEvents%22%3A7%7D@3", ContractError, "AE-ENVELOPE"),
        ("body:text=%5B%5D@3", RetryableError, "AE-GATEWAY"),
    ],
)
def test_an_error_is_raised_after_the_events_before_it(
    fault: str, kind: type[ServiceError], code: str, service: Service, settings: dict[str, Any]
) -> None:
    """Each kind of error is an exception of its own, with its code and without the token."""
    service.add(events(0, 100))
    service.add_faults([fault])
    log = AuditEvents(**settings, page_size=20, concurrency=1, max_retries=0)
    pages: list[EventPage] = []
    with pytest.raises(kind) as raised:
        pages.extend(log.pages())
    assert len(pages) == 2
    assert isinstance(raised.value, AuditEventsError)
    assert raised.value.code == code
    assert str(raised.value).startswith(f"{code}: ")
    assert settings["access_token"] not in str(raised.value)


def test_an_error_has_the_wait_that_the_service_requests(
    service: Service, settings: dict[str, Any]
) -> None:
    """It has the wait even if no retries are left, so that a scheduler can wait."""
    service.add_faults(["status:code=429,retry-after=600@1-"])
    with pytest.raises(RetryableError) as raised:
        list(AuditEvents(**settings, max_retries=0).pages())
    assert raised.value.retry_after_seconds == 600


def test_an_error_is_raised_again_if_the_iterator_is_used_again(
    service: Service, settings: dict[str, Any]
) -> None:
    """A loop that continues with the same iterator must not consider the range complete."""
    service.add(events(0, 100))
    service.add_faults(["status:code=503@3"])
    pages = AuditEvents(**settings, page_size=20, concurrency=1, max_retries=0).pages()
    for _ in range(3):
        with pytest.raises(RetryableError):
            list(pages)
    pages.close()
    assert list(pages) == []
