"""Runs the tap: the command ``tap-audit-events``, and ``python -m tap_audit_events``."""

from __future__ import annotations

import logging
import os
import sys

from tap_audit_events.redaction import guard_log, guard_stderr

_LEVELS = ("TAP_AUDIT_EVENTS_LOGLEVEL", "LOGLEVEL")


def main() -> None:
    """Run the tap; what is wrong before it can say so itself is one line, too."""
    guard_stderr()
    guard_log()
    for name in _LEVELS:
        level = os.environ.get(name, "")
        if level and level.upper() not in logging.getLevelNamesMapping():
            sys.exit(
                f"AE-SETTINGS: {name} is no log level: set it to DEBUG, INFO, WARNING or ERROR"
            )
    try:
        # Imported here, so that Ctrl-C while the SDK is loaded is no traceback.
        from tap_audit_events.tap import TapAuditEvents  # noqa: PLC0415

        TapAuditEvents.cli()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
