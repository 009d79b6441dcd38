"""The names that identify the stream of events and its records."""

from typing import Final

STREAM: Final = "audit_events"
COVERAGE_STREAM: Final = "audit_events_coverage"
PRIMARY_KEY: Final = "id"
ORGANIZATION_KEY: Final = "organization_id"
"""With several organizations, also part of the key: events of two may have the same id."""

REPLICATION_KEY: Final = "occurredAt"
