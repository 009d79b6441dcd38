"""The organizations of a run by token: what they share, and the log lines that name them."""

from __future__ import annotations

from collections import deque
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from logging import Logger, LoggerAdapter
from typing import Any, cast

from tap_audit_events.config.settings import Settings
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.client import Client
from tap_audit_events.service.rate_limiter import RateLimiter, RequestCounts
from tap_audit_events.service.transport import Transport


@dataclass(eq=False)
class TokenGroup:
    """Organizations whose token has the same source: the service limits and refuses it for all.

    Attributes:
        organizations: the settings of each.
        limiter: shared by all groups with the same token.
        has_others: whether requests with another token can be sent while these wait.
        unopened: what was not opened so far: an object for each organization, in order.
    """

    organizations: list[Settings]
    limiter: RateLimiter
    transport: Transport
    logger: Logger
    has_others: bool
    unopened: deque[Any] = field(default_factory=deque)
    _authenticator: AccessTokenAuthenticator | None = None

    @property
    def is_held(self) -> bool:
        """Whether a request for them would have to wait, while others can be sent."""
        return self.has_others and self.limiter.is_held

    def client(self, settings: Settings) -> Client:
        """A client for one of the organizations. Its log lines name it if there are several."""
        if self._authenticator is None:
            self._authenticator = AccessTokenAuthenticator(settings, self.logger)
        logger = organization_logger(self.logger, settings)
        return Client(settings, self.transport, self._authenticator, self.limiter, logger)

    def give_up(self) -> list[str]:
        """Open no other organization; return the ids of those that are not open."""
        ids = [each.organization_id for each in self.unopened]
        self.unopened.clear()
        return ids


def token_groups(
    settings: Settings,
    requests: RequestCounts,
    transport: Transport,
    *,
    runtime: Runtime,
    logger: Logger,
) -> list[TokenGroup]:
    """The organizations of a run, grouped by their tokens; each token has a rate limiter.

    They are in another order in each run: so those that a run gives up are read by a later one.
    """
    organizations = list(settings.each())
    runtime.shuffle(organizations)
    groups: dict[tuple[str, str | None], list[Settings]] = {}
    for organization in organizations:
        source = organization.access_token, organization.access_token_file
        groups.setdefault(source, []).append(organization)
    limiters = {token: runtime.new_rate_limiter(requests) for token, _ in groups}
    has_others = len(limiters) > 1
    return [
        TokenGroup(group, limiters[token], transport, logger, has_others)
        for (token, _), group in groups.items()
    ]


def organization_logger(logger: Logger, settings: Settings) -> Logger:
    """A logger whose lines begin with the organization's id, if it is one of several."""
    if not settings.is_one_of_several:
        return logger
    return cast("Logger", OrganizationLogger(logger, settings.organization_id))


class OrganizationLogger(LoggerAdapter[Logger]):
    """Writes the id of an organization before each line."""

    def __init__(self, logger: Logger, organization_id: str) -> None:
        super().__init__(logger, {})
        self._organization_id = organization_id

    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        return f"{self._organization_id}: {msg}", kwargs
