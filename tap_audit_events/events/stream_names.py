"""The names that identify the stream of events and its records."""

from typing import Final

STREAM: Final = "audit_events"
PRIMARY_KEY: Final = "id"
REPLICATION_KEY: Final = "occurredAt"
