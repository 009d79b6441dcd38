"""The stream ``audit_events_coverage``: evidence of which ranges were read, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from singer_sdk import Tap

from tap_audit_events.events.schema import COVERAGE_SCHEMA
from tap_audit_events.events.stream_names import COVERAGE_STREAM, ORGANIZATION_KEY
from tap_audit_events.run.organization import Organization
from tap_audit_events.singer.sdk_stream import ExactStream


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
        self._ended: list[Organization] = []

    def add(self, organization: Organization) -> bool:
        """Add an organization that was read to its end; return whether it has a record."""
        has_record = organization.coverage_record() is not None
        if has_record:
            self._ended.append(organization)
        return has_record

    def write_records(self) -> Iterator[Organization]:
        """Write the records, each of which changes its organization's state; yield these.

        All events that they cover must have been passed on to the target. After an error, no
        further record is written: the chains continue in the next run.
        """
        ended, self._ended = self._ended, []
        for organization in ended:
            record = organization.coverage_record()
            if record is None:
                continue
            if not self._has_schema:
                self._has_schema = True
                self._write_schema_message()
            self._write_record_message(record)
            organization.end_coverage()
            yield organization
