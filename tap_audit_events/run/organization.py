"""One organization of a run: its range, its plan and its delivery."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from logging import Logger, LoggerAdapter
from typing import Any, cast

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import ServiceError
from tap_audit_events.events.instants import instant_of
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.planning.plan import Plan
from tap_audit_events.extraction.planning.window_reader import ReadPage
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.run.organizations_plan import Stage
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.client import Client
from tap_audit_events.service.rate_limiter import RateLimiter, RunRequests


class OrganizationRun:
    """Reads the range of one organization.

    Attributes:
        group: the organizations with the same token.
        logger: its lines name the organization if there are several.
        opened_at: the time before its first request; the range does not end later.
        window: the range, None if it is empty.
        stage: whether it was just opened, has a page to deliver, or has ended.
        has_read: whether a page was read; if not, its state stays unchanged, including the action
            types in it.
        error: why it could not be opened or read to its end; None if nothing went wrong.
    """

    def __init__(
        self,
        settings: Settings,
        watermark: Watermark,
        *,
        runtime: Runtime,
        client: Client,
        group: TokenGroup,
        logger: Logger,
    ) -> None:
        self.settings = settings
        self.client = client
        self.logger = logger
        self.group = group
        self.stage = Stage.OPENED
        self.has_read = False
        self.error: Exception | None = None
        self.opened_at = now = instant_of(runtime.now())
        self.window = run_window(
            start_date=settings.start_date,
            end_date=settings.end_date,
            bookmark=watermark.bookmark,
            lookback_seconds=settings.lookback_seconds,
            now=now,
            ids_from=watermark.ids_from,
        )
        watermark.start_at(settings.start_date)
        self.delivery = Delivery(watermark, settings.record_shape)
        self.plan = Plan(
            self.window or Window(None, now),  # if the range is empty, nothing is requested
            page_size=settings.page_size,
            concurrency=settings.concurrency,
        )

    def start_page(self, page: ReadPage) -> bool:
        """Start the delivery of a page, and return whether that was possible."""
        self.has_read = True
        try:
            self.delivery.start(page)
        except ServiceError as error:
            self.fail(error)
        return self.error is None

    def write_page(self, write: Callable[[Delivery], None]) -> None:
        """Write the page, and count the written events as delivered, even after an error."""
        try:
            write(self.delivery)
        except ServiceError as error:
            self.fail(error)
        finally:
            self.delivery.commit()

    def fail(self, error: Exception) -> None:
        """Record the error that ends this run; raise it if the setting `organizations` is unset."""
        if not self.settings.is_one_of_several:
            raise error
        self.error = error

    @property
    def organization_id(self) -> str:
        return self.settings.organization_id

    @property
    def has_requests(self) -> bool:
        return self.window is not None and self.error is None


@dataclass(eq=False)
class TokenGroup:
    """Organizations whose token has the same source: the service limits and refuses it for all.

    `has_others` says whether requests with another token can be sent while these wait. The limiter
    is shared by all groups with the same token.
    """

    unopened: Iterator[Settings]
    limiter: RateLimiter
    open_run: Callable[[Settings, TokenGroup], Any]
    has_others: bool
    _authenticator: AccessTokenAuthenticator | None = None

    @property
    def is_held(self) -> bool:
        return self.has_others and self.limiter.is_held

    def open_next(self) -> Any:
        """What `open_run` returns for the next organization; None if all are open."""
        settings = next(self.unopened, None)
        if settings is None:
            return None
        return self.open_run(settings, self)

    def give_up(self) -> list[str]:
        """Open no other organization; return the ids of those that are not open."""
        return [each.organization_id for each in self.unopened]

    def authenticator(self, settings: Settings, logger: Logger) -> AccessTokenAuthenticator:
        """The authenticator for all organizations of the group."""
        if self._authenticator is None:
            self._authenticator = AccessTokenAuthenticator(settings, logger)
        return self._authenticator


def token_groups(
    settings: Settings,
    open_run: Callable[[Settings, TokenGroup], Any],
    requests: RunRequests,
    runtime: Runtime,
) -> list[TokenGroup]:
    """The organizations of a run, grouped by their tokens; each token has a rate limiter.

    They are in another order in each run: so those that a run gives up are read by a later one.
    """
    organizations = list(settings.each())
    runtime.shuffle(organizations)
    groups: dict[tuple[str, str | None], list[Settings]] = {}
    for each in organizations:
        groups.setdefault((each.access_token, each.access_token_file), []).append(each)
    limiters = {token: runtime.new_rate_limiter(requests) for token, _ in groups}
    return [
        TokenGroup(iter(group), limiters[token], open_run, has_others=len(limiters) > 1)
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
