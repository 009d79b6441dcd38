"""Decides which organizations a run gives up before it has sent a request for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final, NamedTuple

from tap_audit_events.errors.exceptions import RetryableError, ServiceError
from tap_audit_events.run.tokens import TokenGroup

MAX_FAILURES: Final = 10
"""Organizations in a row that fail, before others are given up."""

_REFUSED: Final = "AE-401"
_OF_ONE_ORGANIZATION: Final = frozenset(
    {_REFUSED, "AE-400", "AE-403", "AE-404", "AE-CURSOR-REFUSED"}
)
"""Errors that the service itself sends: they show that it is up."""


class GivenUp(NamedTuple):
    """The tokens whose remaining organizations are given up, the error that led to it, and why."""

    tokens: Collection[TokenGroup]
    error: ServiceError
    reason: str


class Failures:
    """Decides which other organizations are given up: only those that share what fails.

    - An organization's token, if the service refuses it and has accepted it for nobody, or if it
      refuses or limits the token for `MAX_FAILURES` organizations in a row.
    - Everything, as long as there is no page of any organization. After `MAX_FAILURES` failures in
      a row, the organizations with the same tokens are given up; after as many tokens, all others.

    Once there is a page, an organization that fails for a reason of its own, such as a part of the
    service that is down, says nothing about others. But if there are many of these, it would take
    long to retry requests for each as often as for the first.

    Attributes:
        has_page: whether the service has sent a page of any organization.
        is_impatient: whether so many organizations have used up their retries that others get only
            one.
    """

    def __init__(self, tokens: Collection[TokenGroup]) -> None:
        self.has_page = False
        self._tokens = tokens
        self._accepted: set[TokenGroup] = set()
        self._failed: list[TokenGroup] = []  # in a row, without a page of anybody
        self._failed_with: Counter[TokenGroup] = Counter()  # in a row, because of the token
        self._retried = 0

    @property
    def is_impatient(self) -> bool:
        return self._retried >= MAX_FAILURES

    def may_send(self, in_flight: int) -> bool:
        """Whether a request for another organization may be sent, with so many in flight.

        As long as there is no page, no more are sent than the failures that lead to giving up.
        """
        return self.has_page or in_flight + len(self._failed) % MAX_FAILURES < MAX_FAILURES

    def add(self, token: TokenGroup, error: Exception) -> GivenUp | None:
        """Count the error of an organization; return what is given up because of it."""
        if not isinstance(error, ServiceError):
            return None
        self._retried += isinstance(error, RetryableError)
        if error.concerns_token:
            self._failed_with[token] += 1
            is_new = error.code == _REFUSED and token not in self._accepted
            if is_new or self._failed_with[token] % MAX_FAILURES == 0:
                verb = "refuses" if error.code == _REFUSED else "limits"
                return GivenUp((token,), error, f"the service {verb} their access token")
        if error.code in _OF_ONE_ORGANIZATION:
            self._failed.clear()
        elif not self.has_page:
            self._failed.append(token)
            if len(self._failed) % MAX_FAILURES == 0:
                return self._without_page(error)
        return None

    def page(self, token: TokenGroup) -> None:
        """Record that the service has sent a page."""
        self.has_page = True
        self._accepted.add(token)
        del self._failed_with[token]

    def _without_page(self, error: ServiceError) -> GivenUp:
        failed = set(self._failed)
        reason = (
            f"{MAX_FAILURES} in a row failed and no page of any organization has arrived. Each run"
            " requests the organizations in another order"
        )
        return GivenUp(failed if len(failed) < MAX_FAILURES else self._tokens, error, reason)
