"""One organization of a run: its range, its plan, and the state that follows what it delivered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.events.instants import EARLIEST, Instant, instant_of, to_nanoseconds
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.extraction.coverage import continued_chain
from tap_audit_events.extraction.delivery import Delivery
from tap_audit_events.extraction.planning.plan import Plan
from tap_audit_events.extraction.run_state import chain_of, from_run_state, read_until, to_run_state
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.run.start_warnings import warn_of_gaps
from tap_audit_events.run.tokens import TokenGroup, organization_logger
from tap_audit_events.service.client import Client

GivenState = Mapping[str, Any] | SettingsError
"""What earlier runs left for an organization: see `to_run_state`. Or why it cannot be used."""


class Organization:
    """Reads the range of one organization, from the time when it is opened.

    Attributes:
        group: the organizations with the same token.
        logger: its lines name the organization if there are several.
        opened_at: the time before its first request; the range does not end later.
        window: the range, None if it is empty or was not opened.
        has_read: whether a page was read; if not, its state stays as it was given.
        error: why it could not be opened or read to its end; None if nothing went wrong.
    """

    client: Client
    plan: Plan

    def __init__(
        self,
        settings: Settings,
        state: GivenState,
        *,
        group: TokenGroup,
        runtime: Runtime,
        counts_coverage: bool,
    ) -> None:
        self.settings = settings
        self.group = group
        self.logger = organization_logger(group.logger, settings)
        self.opened_at = EARLIEST
        self.window: Window | None = None
        self.has_read = False
        self.error: Exception | None = None
        self.delivery = Delivery(Watermark())
        self._given = state
        self._runtime = runtime
        self._counts_coverage = counts_coverage

    @property
    def organization_id(self) -> str:
        return self.settings.organization_id

    @property
    def bookmark(self) -> Instant | None:
        """The time of the newest event delivered: see `Watermark`."""
        return self.delivery.watermark.bookmark

    @property
    def has_requests(self) -> bool:
        """Whether there is anything to request."""
        return self.window is not None and self.error is None

    @property
    def windows(self) -> int:
        """How many windows were requested."""
        return 0 if self.window is None else self.plan.windows

    def open(self, *, is_impatient: bool) -> None:
        """Fix the range, and warn of events that it leaves out.

        If the run is impatient, a request is retried at most once.
        """
        settings, given = self.settings, self._given
        now = self._runtime.now()
        self.opened_at = instant_of(now)
        try:
            if isinstance(given, SettingsError):
                raise given
            watermark = from_run_state(
                given,
                organization_id=settings.organization_id,
                lookback_seconds=settings.lookback_seconds,
            )
            chain = chain_of(given) if self._counts_coverage else None
        except SettingsError as error:
            self.error = error
            return
        warn_of_gaps(watermark, given, settings, now=now, logger=self.logger)
        self.window = window = run_window(
            start_date=settings.start_date,
            end_date=settings.end_date,
            bookmark=watermark.bookmark,
            lookback_seconds=settings.lookback_seconds,
            now=self.opened_at,
            ids_from=watermark.ids_from,
        )
        watermark.start_at(settings.start_date)
        self.delivery = Delivery(watermark, settings.exclude_action_types)
        if window is None:
            return
        if self._counts_coverage:
            self.delivery.coverage = continued_chain(
                chain,
                range_start=window.start,
                action_types=settings.action_types,
                exclude_action_types=settings.exclude_action_types,
                watermark=watermark,
                read_until=read_until(given),
            )
        self.plan = Plan(window, page_size=settings.page_size)
        if is_impatient:
            settings = replace(settings, max_retries=min(1, settings.max_retries))
        self.client = self.group.client(settings)

    def log_restarts(self) -> None:
        """Log the windows that were restarted since the last call."""
        while self.window is not None and self.plan.restarted:
            self.logger.warning(
                "The service refused one of its own cursors, which may have expired: the rest"
                " of the window %s is requested again without a cursor",
                self.plan.restarted.pop(),
            )

    def fail(self, error: Exception) -> None:
        """Record the error that ends this organization; raise it if it is the only one."""
        if not self.settings.is_one_of_several:
            raise error
        self.error = error

    # State

    def state(self) -> Mapping[str, Any]:
        """The state for the next run, after what was delivered so far: see `to_run_state`."""
        return self.snapshot()()

    def snapshot(self) -> Callable[[], Mapping[str, Any]]:
        """What returns the state as it is now, also later."""
        given = {} if isinstance(self._given, SettingsError) else self._given
        if not self.has_read:
            return partial(dict, given)
        return partial(
            to_run_state,
            self.delivery.watermark.snapshot(),
            organization_id=self.organization_id,
            action_types=self.settings.action_types,
            exclude_action_types=self.settings.exclude_action_types,
            coverage=self._coverage_json(given),
        )

    def _coverage_json(self, given: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The chain; None if events were delivered without being counted: it then starts again."""
        if self.delivery.coverage is not None:
            return self.delivery.coverage.to_json()
        return None if self.delivery.delivered else given.get("coverage")

    # Coverage

    def coverage_record(self) -> dict[str, Any] | None:
        """The record of the range, if it was read to its end, is counted and covers anything new.

        Once it is written, call `end_coverage`.
        """
        coverage, window = self.delivery.coverage, self.window
        if coverage is None or window is None or self.error is not None:
            return None
        until = to_nanoseconds(window.end)
        if until <= coverage.start:
            return None
        return coverage.record(self.organization_id, until, self.opened_at)

    def end_coverage(self) -> None:
        """Continue the chain after the record that was written."""
        coverage, window = self.delivery.coverage, self.window
        if coverage is not None and window is not None:
            self.delivery.coverage = coverage.following(to_nanoseconds(window.end))
