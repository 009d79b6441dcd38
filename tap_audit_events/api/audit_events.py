"""The class `AuditEvents`, which reads audit events from Python."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from datetime import date
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.api.page_iterator import PageIterator, RunIterator
from tap_audit_events.api.run_states import RunStates
from tap_audit_events.config.environment import settings_of
from tap_audit_events.config.schema import SETTINGS
from tap_audit_events.config.sdk_settings import OF_THE_TAP
from tap_audit_events.config.settings import (
    Settings,
    checked_settings,
    instant_of_setting,
    override,
)
from tap_audit_events.config.unknown_settings import warnings_of_tap_settings
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.events.instants import Instant
from tap_audit_events.extraction.run_state import from_run_state
from tap_audit_events.run.run import Run
from tap_audit_events.run.runtime import Runtime

if TYPE_CHECKING:
    import pyarrow as pa

_logger: Final = logging.getLogger("tap_audit_events")


class AuditEvents:
    """The audit events of one or several organizations: complete, in order, each once.

    An object holds only settings. It can be used from several threads: each call of `pages` or
    `arrow` is a separate run, with its own connections and state. Warnings and retries are logged
    by the logger ``tap_audit_events``.

    The arguments are the settings of the tap, with the same names, defaults and checks: see the
    table of settings. None means unset.

    Raises:
        SettingsError: the message names each setting to fix (code ``AE-SETTINGS``).

    Example:
        >>> log = AuditEvents(base_url=…, organization_id=…, access_token_file="token")
        >>> for page in log.pages(state=stored):
        ...     store(page.events, page.state)
    """

    def __init__(
        self,
        *,
        base_url: str,
        organization_id: str | None = None,
        organizations: Sequence[Mapping[str, str]] | None = None,
        access_token: str | None = None,
        access_token_file: str | None = None,
        start_date: date | str | None = None,
        end_date: date | str | None = None,
        action_types: Sequence[str] | None = None,
        exclude_action_types: Sequence[str] | None = None,
        page_size: int | None = None,
        concurrency: int | None = None,
        lookback_seconds: int | None = None,
        request_timeout_seconds: float | None = None,
        max_retries: int | None = None,
        max_response_megabytes: int | None = None,
        quarantine_file: str | None = None,
        details_format: str | None = None,
        raw_event: bool | None = None,
        user_agent: str | None = None,
    ) -> None:
        given = dict(locals())
        del given["self"]
        self._settings = checked_settings(given, _logger)
        self._new_runtime: Callable[[], Runtime] = Runtime

    @classmethod
    def from_env(cls, **settings: Any) -> AuditEvents:
        """An object with the settings of the environment variables ``TAP_AUDIT_EVENTS_…``.

        They are read once, by this call.

        Args:
            settings: arguments as of the class; they override variables, and None unsets one.

        Raises:
            SettingsError: the message names each setting to fix; a variable with a misspelt name is
                one, too.

        Example:
            >>> for page in AuditEvents.from_env(start_date="2026-01-01").pages():
            ...     print(len(page))
        """
        given = override(settings_of(os.environ), settings)
        for warning in warnings_of_tap_settings(given):
            _logger.warning("%s", warning)
        known = [*SETTINGS, *OF_THE_TAP]
        checked = checked_settings(given, _logger, known=known, environment="in the environment")
        return cls.of_settings(checked, Runtime)

    @classmethod
    def of_settings(cls, settings: Settings, new_runtime: Callable[[], Runtime]) -> AuditEvents:
        """An object with settings that have been read and checked.

        Args:
            settings: what to read, and how.
            new_runtime: creates the runtime of each run, for a program that stops runs at a signal.
        """
        created = cls.__new__(cls)
        created._settings = settings  # noqa: SLF001 - its own
        created._new_runtime = new_runtime  # noqa: SLF001 - its own
        return created

    def __repr__(self) -> str:
        settings = self._settings
        which = f"{len(settings.organizations)} organizations" if settings.organizations else ""
        return f"AuditEvents({settings.base_url}, {which or settings.organization_id})"

    def pages(
        self,
        start: date | str | None = None,
        end: date | str | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> PageIterator:
        """Read the events of a range, a page at a time.

        Store each page's `EventPage.state` with its events, and pass the last state to the next
        call: it reads the events that are new or became visible late, each once. If there is no
        page, keep the state that you have. If the service sends events out of order, or
        the settings exclude all events of a page, it has no events, only a newer state.

        Close the iterator to end early (``contextlib.closing``); this ends its connections and
        threads. Only one thread at a time may advance it, and any thread may close it; a fork of
        the process cannot continue it. In asyncio, use ``asyncio.to_thread(next, pages, None)``.

        Args:
            start: time of the earliest event, inclusive: an aware ``datetime``, RFC 3339 text, or a
                date, which is midnight UTC. Default: the setting ``start_date``; if that is unset,
                the oldest event.
            end: time of the latest event, inclusive; a date is the end of that day in UTC. Default:
                the setting ``end_date``; if that is unset, the time just before the organization's
                first request. Later events are left for the next call.
            state: the last state that was stored; None or empty for the first call.

        Raises:
            SettingsError: an argument cannot be used; raised by the call itself.
            ServiceError: the range cannot be read to its end; raised by the iterator, after all
                events before it. The states of earlier pages remain valid: to continue, call
                `pages` again with the last one. The same iterator only raises the error again.
            OrganizationsError: some of several organizations cannot be read to their end; raised
                after the others have been read.
            StoppedError: another thread has closed the iterator while this one waited for a page.
        """
        settings = self._settings_for(start, end)
        states = RunStates(state or {}, as_list=bool(settings.organizations))
        for each in settings.each():  # so that an error is raised here, not by the iterator
            organization_id = each.organization_id
            from_run_state(
                states.of(organization_id), organization_id=organization_id, lookback_seconds=0
            )
        runtime = self._new_runtime()
        return PageIterator(_pages(settings, states, runtime), runtime.stop)

    def arrow(
        self,
        start: date | str | None = None,
        end: date | str | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> pa.RecordBatchReader:
        """Read the events of a range as Arrow record batches of the schema `arrow_schema`.

        To keep the state, use `pages` and `EventPage.arrow`. The run ends when the reader is read
        to its end or no longer referenced; ``RecordBatchReader.close`` does not end it.

        Args:
            start: as in `pages`.
            end: as in `pages`.
            state: as in `pages`.

        Raises:
            SettingsError: as `pages`; or ``pyarrow`` is not installed.
            ServiceError: as `pages`.
            OrganizationsError: as `pages`.
        """
        from tap_audit_events.api.arrow import reader_of  # noqa: PLC0415 - an extra

        return reader_of(RunIterator(_batches(self.pages(start, end, state))))

    @staticmethod
    def arrow_schema() -> pa.Schema:
        """The schema of all record batches; it does not depend on the events.

        Raises:
            SettingsError: ``pyarrow`` is not installed.
        """
        from tap_audit_events.api.arrow import SCHEMA  # noqa: PLC0415 - an extra

        return SCHEMA

    def _settings_for(self, start: date | str | None, end: date | str | None) -> Settings:
        settings = self._settings
        start_date = settings.start_date if start is None else _instant("start", start)
        end_date = settings.end_date if end is None else _instant("end", end)
        if start_date is not None and end_date is not None and end_date < start_date:
            problem = "end or end_date is before start or start_date"
            raise SettingsError([f"{problem}: it must be the same or later"])
        return replace(settings, start_date=start_date, end_date=end_date)


def _instant(name: str, value: date | str) -> Instant:
    try:
        return instant_of_setting(f"{name}_date", value)
    except ValueError as error:
        raise SettingsError([f"{name} {error}"]) from None


def _pages(
    settings: Settings, states: RunStates, runtime: Runtime
) -> Generator[EventPage, None, None]:
    run = Run(settings, states.of_all(settings), runtime=runtime, logger=_logger)
    changed: dict[str, Callable[[], Mapping[str, Any]]] = {}
    with closing(run.pages()) as pages:
        for page in filter(None, pages):
            organization = page.organization
            bookmark, excluded = organization.bookmark, organization.delivery.excluded
            with page:
                pass  # whoever gets the page keeps the state only after the events are stored
            excluded = organization.delivery.excluded - excluded
            if organization.has_read:
                changed[organization.organization_id] = cache(organization.snapshot())
            if page.texts or excluded or organization.bookmark != bookmark:
                yield EventPage(
                    page.texts,
                    page.instants,
                    organization_id=organization.organization_id,
                    shape=organization.settings.record_shape,
                    state=partial(_state, states, changed.copy()),
                    organization_state=changed[organization.organization_id],
                    excluded=excluded,
                )
    run.check_errors()


def _state(
    states: RunStates, changed: Mapping[str, Callable[[], Mapping[str, Any]]]
) -> dict[str, Any]:
    """The state of a run: of each organization, the one that an earlier run left or a later one."""
    return states.with_changed({name: state() for name, state in changed.items()})


def _batches(pages: PageIterator) -> Generator[pa.RecordBatch, None, None]:
    from tap_audit_events.api.record_batches import combined  # noqa: PLC0415 - an extra

    with closing(pages):
        yield from combined(page.arrow() for page in pages)
