"""The stream ``audit_events_coverage``: evidence of which ranges were read, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from singer_sdk import Tap

from tap_audit_events.events.instants import EARLIEST, Instant, parse_instant, to_nanoseconds
from tap_audit_events.events.schema import COVERAGE_SCHEMA
from tap_audit_events.events.stream_names import COVERAGE_STREAM, ORGANIZATION_KEY
from tap_audit_events.extraction.coverage import Coverage, start_of_chain
from tap_audit_events.extraction.run_state import unusable
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.run.organization import OrganizationRun
from tap_audit_events.singer.sdk_stream import ExactStream
from tap_audit_events.singer.state import run_state_of

_COVERAGE: Final = "coverage"


class CoverageStream(ExactStream):
    """One record for each organization and run, off by default.

    The stream of events writes its records, each after all events that it covers.
    """

    selected_by_default = False

    def __init__(self, tap: Tap, *, now: Callable[[], datetime]) -> None:
        super().__init__(tap, schema=COVERAGE_SCHEMA, name=COVERAGE_STREAM, now=now)
        self.primary_keys = (ORGANIZATION_KEY, "covered_until")
        self.replication_key = "covered_until"
        self._has_schema = False
        self._held: list[tuple[OrganizationRun, Coverage, Instant]] = []

    def check(self, bookmark: Mapping[str, Any], organization_id: str) -> None:
        """Raise `SettingsError` if `begin` cannot continue from an organization's bookmark."""
        if self.selected:
            _chain_of(bookmark, organization_id)

    def begin(self, run: OrganizationRun, bookmark: Mapping[str, Any]) -> None:
        """Begin to count what an organization's run delivers, if the stream is selected.

        It is called before the run's first page. The chain in the organization's bookmark is
        continued if it fits this run.
        """
        if run.window is None or not self.selected:
            return
        coverage = _chain_of(bookmark, run.settings.organization_id)
        start, types = run.window.start, list(run.settings.action_types)
        watermark = run.delivery.watermark
        read_until = _read_until(bookmark)
        if coverage is None or not _continues(coverage, start, types, watermark, read_until):
            coverage = start_of_chain(watermark.bookmark, start, types)
        run.delivery.coverage = coverage

    def hold(self, run: OrganizationRun) -> None:
        """Hold the record of a run that was read to its end, if it covers anything new."""
        coverage, window = run.delivery.coverage, run.window
        if coverage is None or window is None:
            return
        if to_nanoseconds(window.end) > coverage.start:
            self._held.append((run, coverage, to_nanoseconds(window.end)))

    def write_held(self) -> Iterator[OrganizationRun]:
        """Write the records held, each of which changes its run; yield these runs.

        All events that they cover must have been passed on to the target. After an error, no
        further record is written: the chains continue in the next run.
        """
        held, self._held = self._held, []
        for run, coverage, until in held:
            if not self._has_schema:
                self._has_schema = True
                self._write_schema_message()
            record = coverage.record(run.settings.organization_id, until, run.opened_at)
            self._write_record_message(record)
            run.delivery.coverage = coverage.following(until)
            yield run


def coverage_entry(run: OrganizationRun) -> dict[str, Any]:
    """The entry for the chain in an organization's bookmark.

    It is a list, because tools that merge states replace a list as a whole. The list is empty if
    events were delivered without being counted: the chain then starts again.
    """
    coverage = run.delivery.coverage
    if coverage is None:
        return {_COVERAGE: []} if run.delivery.delivered else {}
    scope = {ORGANIZATION_KEY: run.settings.organization_id}
    return {_COVERAGE: [coverage.to_json() | scope]}


def _continues(
    coverage: Coverage,
    start: Instant | None,
    action_types: list[str],
    watermark: Watermark,
    read_until: Instant,
) -> bool:
    """Whether no time after the chain's end is left out, and the action types are the same."""
    is_adjacent = start is None or start <= max(coverage.start, read_until)
    read_from = watermark.covered_from or EARLIEST
    has_same_types = set(coverage.action_types) == set(action_types)
    return is_adjacent and read_from <= coverage.start and has_same_types


def _read_until(bookmark: Mapping[str, Any]) -> Instant:
    """The bookmark as the tap wrote it; a bookmark that was changed by hand may be later."""
    text = run_state_of(bookmark).get("bookmark")
    return EARLIEST if text is None else parse_instant(text)


def _chain_of(bookmark: Mapping[str, Any], organization_id: str) -> Coverage | None:
    """An organization's chain in a bookmark, if any; `SettingsError` if it cannot be read."""
    match bookmark.get(_COVERAGE):
        case [{"organization_id": str(owner)} as value] if owner.lower() == organization_id.lower():
            try:
                return Coverage.from_json(value)
            except ValueError as error:
                raise unusable(str(error)) from None
    return None
