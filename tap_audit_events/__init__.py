"""A Singer tap for the audit events of an organization."""

from typing import Final

STREAM: Final = "audit_events"
PRIMARY_KEY: Final = "id"
REPLICATION_KEY: Final = "occurredAt"
