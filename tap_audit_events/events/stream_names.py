"""The names that identify the stream of events and its records."""

from typing import Final

STREAM: Final = "audit_events"
COVERAGE_STREAM: Final = "audit_events_coverage"
PRIMARY_KEY: Final = "id"
ORGANIZATION_KEY: Final = "organization_id"
"""With several organizations the key is this and `PRIMARY_KEY`: their ids may be the same."""

REPLICATION_KEY: Final = "occurredAt"
