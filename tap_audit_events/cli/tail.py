"""The subcommand `tail`: the newest events, and those that follow."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from operator import itemgetter

from msgspec import structs

from tap_audit_events.api.audit_events import AuditEvents
from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.following import Retrying, check_can_follow
from tap_audit_events.cli.newest import start_of_newest
from tap_audit_events.cli.options import Common
from tap_audit_events.cli.selection import matching
from tap_audit_events.cli.terminal.process import check_reader, write_json_lines
from tap_audit_events.errors.exceptions import OrganizationsError, ServiceError
from tap_audit_events.events.event_filter import EVERY_EVENT, EventFilter
from tap_audit_events.events.instants import EARLIEST, Instant, brief, instant_of, later
from tap_audit_events.service.transport import Connections


def run_tail(
    lines: int, filters: EventFilter, common: Common, interval_seconds: float | None
) -> None:
    """Print the newest events that match, oldest first; with an interval, also those that appear.

    Raises:
        ServiceError: the service refuses the requests or does not follow its interface; without an
            interval also if it fails.
        OrganizationsError: it does so for some of several organizations.
        SettingsError: a setting cannot be used, or an end is set together with an interval.
        StoppedError: a signal asked the run to stop.
    """
    settings, logger = common.settings(), common.logger
    follows = interval_seconds is not None
    if follows:
        check_can_follow(settings)
    if not (lines or follows):
        return
    with Connections() as connections:  # all runs use the same
        runtime = replace(common.runtime(), connections=connections)
        begun_at = instant_of(runtime.now())
        retrying = Retrying(runtime.stop, logger, interval_seconds)
        printed = structs.replace(filters, exclude_action_types=settings.exclude_action_types)
        count, wanted = (lines, printed) if lines else (1, EVERY_EVENT)
        start, error = retrying.call(
            lambda: start_of_newest(count, wanted, settings, runtime=runtime, logger=logger)
        )
        if follows:
            # The newest event and the lookback are read in any case. So events that exist already
            # are known, and later ones are recognized as new, even if this clock is ahead.
            lookback = later(begun_at, seconds=-settings.lookback_seconds)
            start = max(min(start or EARLIEST, lookback), settings.start_date or EARLIEST)
        if start is None:
            return
        if error is not None and follows:
            logger.warning(
                "%s. Of these organizations, only events since %s are printed",
                error.summary,
                brief(start),
            )
        settings = structs.replace(settings, start_date=start)
        tail = Tail(AuditEvents.of_settings(settings, lambda: runtime), begun_at, filters)
        try:
            retrying.call(lambda: tail.begin(lines))
            if error is not None and not follows:
                raise error
            while interval_seconds is not None:
                runtime.stop.wait(interval_seconds)
                retrying.call(tail.print_new)
        except (ServiceError, OrganizationsError) as ended_by:
            ended_by.add_note(f"Events printed: {tail.printed:,}.")
            raise


class Tail:
    """Prints the newest events that match, and those that appear later, each once.

    All events from `begun_at` on are printed.
    """

    def __init__(self, events: AuditEvents, begun_at: Instant, filters: EventFilter) -> None:
        self.printed = 0
        self._events = events
        self._begun_at = begun_at
        self._filters = filters
        self._last: EventPage | None = None
        self._held: list[tuple[Instant, bytes]] = []
        self._unread: set[str] | None = None  # organizations that no try has read to the end so far

    def begin(self, lines: int) -> None:
        """Print the newest events, and those that appear meanwhile.

        After an error it can be called again, and continues. If only some of several organizations
        failed, the events of the others are printed; their later events count as new.
        """
        try:
            for page in self._new_pages():
                if self._unread is not None and page.organization_id not in self._unread:
                    self._write(page.raw)
                    continue
                self._held += zip(page.instants, page.raw, strict=True)
                self._held.sort(key=itemgetter(0))  # organizations are read side by side
                older = bisect_left(self._held, self._begun_at, key=itemgetter(0))
                del self._held[: max(0, min(older, len(self._held) - lines))]
        except OrganizationsError as error:
            self._write_held()
            unread = {*error.errors, *error.not_started}
            if self._unread is not None:
                unread &= self._unread
            self._unread = unread
            raise
        self._write_held()

    def _write(self, texts: Sequence[bytes]) -> None:
        if texts:
            write_json_lines(texts)
            self.printed += len(texts)

    def _write_held(self) -> None:
        self._write([text for _, text in self._held])
        self._held = []

    def print_new(self) -> None:
        """Print the events that are new."""
        for page in self._new_pages():
            self._write(page.raw)

    def _new_pages(self) -> Iterator[EventPage]:
        check_reader()  # without new events, no write would notice that the reader is gone
        state = None if self._last is None else self._last.state
        with closing(self._events.pages(state=state)) as pages:
            for page in pages:
                yield matching(page, self._filters)
                self._last = page
