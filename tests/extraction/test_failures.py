"""When a run for several organizations gives up those that it has not started."""

from collections.abc import Collection

import pytest

from tap_audit_events.errors.exceptions import service_error
from tap_audit_events.extraction.failures import MAX_FAILURES, FailuresInARow

TOKENS = [f"token {number}" for number in range(2 * MAX_FAILURES)]
TEMPORARY = [service_error(code) for code in ("AE-500", "AE-TIMEOUT", "AE-RETRY-AFTER")]
FINAL = [service_error("AE-403"), service_error("AE-EVENT"), ValueError("a defect")]


def given_up(failed: list[str], error: Exception) -> list[Collection[str]]:
    failures = FailuresInARow(TOKENS)
    return [failures.add(token, error) for token in failed]


@pytest.mark.parametrize("error", TEMPORARY)
def test_all_are_given_up_after_ten_failures_with_different_tokens(error: Exception) -> None:
    """The service must be down then; later failures are counted from one again."""
    found = given_up(TOKENS, error)
    nine: list[Collection[str]] = [()] * (MAX_FAILURES - 1)
    assert found == [*nine, TOKENS, *nine, TOKENS]


@pytest.mark.parametrize("count", [1, 2, MAX_FAILURES - 1])
def test_ten_failures_with_fewer_tokens_give_up_only_those_tokens(count: int) -> None:
    failed = [TOKENS[number % count] for number in range(MAX_FAILURES)]
    *others, last = given_up(failed, TEMPORARY[0])
    assert not any(others)
    assert last == set(TOKENS[:count])


@pytest.mark.parametrize("count", [2, 5, MAX_FAILURES])
def test_all_are_given_up_if_ten_tokens_have_failed_one_after_the_other(count: int) -> None:
    """Organizations with the same token may be next to each other in the settings."""
    failed = [TOKENS[number // count] for number in range(MAX_FAILURES * count)]
    *others, last = given_up(failed, TEMPORARY[0])
    assert last == TOKENS
    assert TOKENS not in others


@pytest.mark.parametrize("error", FINAL)
def test_an_error_that_is_not_temporary_gives_up_no_other_organization(error: Exception) -> None:
    assert not any(given_up(TOKENS, error))


@pytest.mark.parametrize("error", [None, *FINAL])
def test_a_page_or_another_error_resets_the_count(error: Exception | None) -> None:
    failures = FailuresInARow(TOKENS)
    for token in TOKENS[1:MAX_FAILURES]:
        assert not failures.add(token, TEMPORARY[0])
    if error is None:
        failures.end()
    else:
        assert not failures.add(TOKENS[0], error)
    assert not failures.add(TOKENS[0], TEMPORARY[0])
