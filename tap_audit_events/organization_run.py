"""One organization of a run: its range, its plan, and what of it is delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from logging import Logger, LoggerAdapter
from typing import Any, TypeAlias, cast

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.events.instants import instant_of
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.fleet_plan import Stage
from tap_audit_events.extraction.plan import Plan
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.runtime import Runtime
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.client import Client, new_authenticator
from tap_audit_events.service.rate_limiter import RunRequests
from tap_audit_events.service.transport import Transport

WatermarkOf: TypeAlias = Callable[[Settings, Logger], Watermark]
"""What earlier runs delivered of an organization; warnings go to the logger.

Raises `AuditEventsError` if that cannot be known.
"""


class OrganizationRun:
    """Reads the range of one organization.

    Args:
        settings: those of the organization.
        watermark: what earlier runs delivered.
        runtime: what surrounds the run.
        client: requests its pages.
        is_held: whether the service wants no requests for it at present.
        logger: is told of restarts.

    Attributes:
        opened_at: when it was opened, before its first request; the range ends then at the latest.
        window: the range, None if it is empty.
        delivery: which events are delivered.
        plan: which windows are requested.
        stage: whether it is opened, has a page to deliver, or has ended.
        error: why it ended before its end, or could not be opened.
    """

    def __init__(
        self,
        settings: Settings,
        watermark: Watermark,
        *,
        runtime: Runtime,
        client: Client,
        is_held: Callable[[], bool],
        logger: Logger,
    ) -> None:
        self.settings = settings
        self.client = client
        self.logger = logger
        self._is_held = is_held
        self.stage = Stage.OPENED
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
            self.window or Window(None, now),
            page_size=settings.page_size,
            concurrency=settings.concurrency,
        )

    @property
    def is_held(self) -> bool:
        """Whether the service wants no requests for it at present."""
        return self._is_held()

    def finish_page(self) -> None:
        """Count the page as delivered; after an error, only what of it was written."""
        self.delivery.finish(is_written=self.error is None)

    @property
    def has_requests(self) -> bool:
        """Whether there is anything to request."""
        return self.window is not None and self.error is None


class TokenGroup:
    """Organizations with the same token: the service limits their requests together.

    Args:
        each: the settings of each organization.
        watermark_of: what earlier runs delivered of an organization.
        transport: sends the requests.
        requests: those of the whole run.
        runtime: what surrounds the run.
        logger: is told of retries and restarts.
        is_fleet: whether there are several organizations: each log line then begins with the id of
            one, and an error ends only its organization.
        has_others: whether there are other tokens, for which requests can be sent meanwhile.
    """

    def __init__(
        self,
        each: Iterable[Settings],
        watermark_of: WatermarkOf,
        *,
        transport: Transport,
        requests: RunRequests,
        runtime: Runtime,
        logger: Logger,
        is_fleet: bool,
        has_others: bool,
    ) -> None:
        self._each = iter(each)
        self._watermark_of = watermark_of
        self._transport = transport
        self._runtime = runtime
        self._logger = logger
        self._is_fleet = is_fleet
        self._has_others = has_others
        self._limiter = runtime.new_rate_limiter(requests)
        self._authenticators: dict[str | None, AccessTokenAuthenticator] = {}

    @property
    def is_held(self) -> bool:
        """Whether the service wants no requests for them at present."""
        return self._has_others and self._limiter.is_held

    def open_next(self) -> OrganizationRun | None:
        """Open the next organization; None if all are open. It may have ended with an error."""
        settings = next(self._each, None)
        return None if settings is None else self._opened(settings)

    def _opened(self, settings: Settings) -> OrganizationRun:
        logger = self._logger
        if self._is_fleet:
            logger = organization_logger(logger, settings.organization_id)
        error: AuditEventsError | None = None
        try:
            watermark = self._watermark_of(settings, logger)
        except AuditEventsError as caught:
            if not self._is_fleet:
                raise
            watermark, error = Watermark(), caught
        client = Client(
            settings,
            self._transport,
            limiter=self._limiter,
            logger=logger,
            authenticator=self._authenticator_of(settings),
        )
        run = OrganizationRun(
            settings,
            watermark,
            runtime=self._runtime,
            client=client,
            is_held=lambda: self.is_held,
            logger=logger,
        )
        run.error = error
        return run

    def _authenticator_of(self, settings: Settings) -> AccessTokenAuthenticator:
        """One for all organizations whose token comes from the same place."""
        path = settings.access_token_file
        if path not in self._authenticators:
            self._authenticators[path] = new_authenticator(settings, self._logger)
        return self._authenticators[path]


def organization_logger(logger: Logger, organization_id: str) -> Logger:
    """A logger whose lines begin with the id of an organization."""
    return cast("Logger", OrganizationLogger(logger, organization_id))


class OrganizationLogger(LoggerAdapter[Logger]):
    """Writes the id of an organization before each line."""

    def __init__(self, logger: Logger, organization_id: str) -> None:
        super().__init__(logger, {})
        self._organization_id = organization_id

    def process(
        self, msg: object, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        return f"{self._organization_id}: {msg}", kwargs
