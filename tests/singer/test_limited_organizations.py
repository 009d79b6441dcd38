"""Several organizations in one run, while the service is down or limits some of the tokens."""

from pathlib import Path

import pytest

from tap_audit_events.run.failures import MAX_FAILURES
from tap_audit_events.sandbox import Fault
from tests.shared_server import SHARED, SharedServer, a_service, an_id


def test_a_token_that_is_limited_does_not_hold_up_other_tokens() -> None:
    """While one token waits after a 429, the organizations of the other token are read."""
    slow = [a_service(n, 5, access_token="acme_pat_limited") for n in range(2)]
    fast = [a_service(n, 5) for n in range(2, 12)]
    for each in slow:
        each.add_faults([Fault(kind="status", code=429, retry_after="2", when="1")])
    with SharedServer([*slow, *fast]).served() as shared:
        done = shared.run(organizations=shared.with_tokens, concurrency=2).raise_for_exit_code()
        first_retry = min(each.requests[1].seconds for each in slow if len(each.requests) > 1)
        last_of_others = max(each.requests[-1].seconds for each in fast)
    assert len(done.records) == 60
    assert last_of_others < first_retry


@pytest.mark.parametrize("retry_after", ["3600", "9" * 400])
def test_a_wait_that_is_too_long_holds_no_other_organization(retry_after: str) -> None:
    """This holds even if no retry is left; a service may give the time in milliseconds."""
    services = [a_service(n, 5) for n in range(4)]
    fault = Fault(kind="status", code=429, retry_after=retry_after, when="1")
    services[0].add_faults([fault])
    with SharedServer(services).served() as shared:
        done = shared.run(concurrency=1, max_retries=0)
    assert done.exit_code == 1
    assert len(done.records) == 15
    assert "AE-RETRY-AFTER" in done.log
    assert "AE-DEFECT" not in done.log


def test_the_same_token_from_two_places_is_one_token(tmp_path: Path) -> None:
    """Its organizations share a rate limiter, and wait together."""
    path = tmp_path / "token"
    path.write_text(SHARED)
    path.chmod(0o600)
    services = [a_service(n, 1) for n in range(2)]
    arrived: list[object] = []

    def is_first(request: object) -> bool:
        arrived.append(request)
        return len(arrived) == 1

    for each in services:
        each.add_faults([Fault(kind="status", code=429, retry_after="1", only=is_first)])
    with SharedServer(services).served() as shared:
        items = [
            {"organization_id": an_id(0)},
            {"organization_id": an_id(1), "access_token_file": str(path)},
        ]
        done = shared.run(organizations=items, concurrency=1).raise_for_exit_code()
        refused, *others = (request.seconds for request in shared.several.requests)
        assert min(others) >= refused + 1
    assert len(done.records) == 2


def test_tokens_that_are_limited_end_no_organization_with_another_token() -> None:
    """Ten organizations of limited tokens fail before the first page of another token arrives."""
    limited = [a_service(n, 1, access_token=f"acme_pat_limited-{n % 2}") for n in range(30)]
    for each in limited:
        each.add_faults([Fault(kind="status", code=429, retry_after="86400", when="*")])
    others = [a_service(n, 1) for n in range(30, 60)]
    for each in others:
        each.add_faults([Fault(kind="status", code=503, retry_after="1", when="1")])
    with SharedServer([*limited, *others]).served() as shared:
        done = shared.run(organizations=shared.with_tokens, concurrency=2)
    assert len(done.records) == len(others)


def test_a_refused_organization_shows_that_the_service_is_up() -> None:
    """No organization is given up because others may not be read."""
    services = [a_service(n, 1) for n in range(3 * MAX_FAILURES)]
    for each in services[:-1]:
        each.add_faults([Fault(kind="status", code=403, when="*")])
    with SharedServer(services).served() as shared:
        done = shared.run(concurrency=1)
    assert len(done.records) == 1
