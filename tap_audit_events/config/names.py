"""The names of the package and of its environment variables."""

from typing import Final

PACKAGE: Final = "tap-audit-events"
ENVIRONMENT_PREFIX: Final = "TAP_AUDIT_EVENTS_"
