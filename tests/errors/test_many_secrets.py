"""A thousand access tokens: each is masked, and a text without one costs one search."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tap_audit_events.errors import redaction
from tap_audit_events.errors.redaction import (
    MASK,
    contains_secret,
    redact,
    register_possible_secret,
    register_secret,
)
from tests.errors.test_forms_of_secrets import FORMS
from tests.errors.test_masking import fresh_redaction  # noqa: F401 - a fixture

TOKENS = [f"acme_pat_{n * 7919 % 1000:03}{n:05}x{'0aB-'[n % 4]}" for n in range(1000)]
LINE = "Retry 1 of 8 in 3.2 s: AE-500: status 500, at 100%25 of https://example.com/a%20b?c=\\u0041"


@pytest.fixture
def compiled() -> object:
    """A function that returns how many patterns were compiled since the test began."""
    redaction._compiled.cache_clear()
    return lambda: redaction._compiled.cache_info().misses


@pytest.fixture
def _impatient_threads() -> Iterator[None]:
    """Lets Python switch between threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_impatient_threads")
def test_tokens_that_threads_register_at_the_same_time_are_all_masked() -> None:
    """The workers of several organizations may each read a token file again."""
    for start in range(0, 400, 40):
        tokens = [f"pat_{number}" for number in range(start, start + 40)]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(register_secret, tokens))
        assert [each for each in tokens if not contains_secret(each)] == []


def test_a_text_without_a_token_costs_one_search(compiled: object) -> None:
    """Only one pattern is compiled: compiling takes many times as long as a search."""
    register_secret(*TOKENS)
    register_possible_secret(*TOKENS)
    assert redact(LINE) == LINE
    assert not contains_secret(LINE)
    assert compiled() == 1  # type: ignore[operator]


def test_a_text_with_a_token_costs_few_searches(compiled: object) -> None:
    """Only patterns of the secrets that begin like the token are compiled."""
    register_secret(*TOKENS)
    assert redact(f"<{TOKENS[77]}>") == f"<{MASK}>"
    assert compiled() < 60  # type: ignore[operator]


@pytest.mark.long
def test_any_of_many_tokens_is_masked_in_any_form() -> None:
    """Every 25th token is tested, each in one of the forms."""
    register_secret(*TOKENS)
    for number, token in enumerate(TOKENS[::25]):
        shown = FORMS[number % len(FORMS)](token)
        assert redact(f"<{shown}>") == f"<{MASK}>"


def test_tokens_that_begin_like_others_are_masked_whole() -> None:
    """A token may be the beginning of another, or differ from another only in case."""
    register_secret("acme_pat_1", "acme_pat_12", "acme_pat_123", "ACME_PAT_123", "acme_pat_2\\")
    for text in ("acme_pat_1", "acme_pat_12", "acme_pat_123", "Acme_Pat_123", "acme_pat_2\\\\"):
        assert redact(f"<{text}>") == f"<{MASK}>"
    assert redact("acme_pat_3 acme_pat") == "acme_pat_3 acme_pat"


@pytest.mark.parametrize("count", [1, 2])
def test_the_beginning_of_a_token_is_not_a_token(count: int) -> None:
    """This holds for every length, and with other secrets as well as without."""
    register_secret(*TOKENS[:count])
    for length in range(len(TOKENS[0])):
        assert not contains_secret(TOKENS[0][:length])
    assert contains_secret(TOKENS[0])


def test_a_secret_that_was_possible_may_become_certain() -> None:
    """A search before that changes nothing."""
    register_possible_secret(TOKENS[0])
    assert redact(TOKENS[0]) == MASK
    assert not contains_secret(TOKENS[0])
    register_secret(TOKENS[0])
    assert contains_secret(TOKENS[0])


def test_a_certain_secret_stays_certain() -> None:
    """STATE must not show it, even if it is also a proxy's password, which is a possible secret."""
    register_secret(TOKENS[0])
    register_possible_secret(TOKENS[0])
    assert contains_secret(TOKENS[0])
