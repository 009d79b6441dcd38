"""Runs the tap: the command ``tap-audit-events``, and ``python -m tap_audit_events``."""

from __future__ import annotations

import os
import sys

from tap_audit_events.config.log_config import log_config_errors
from tap_audit_events.config.process import check_log_levels, guard_output, tune_memory
from tap_audit_events.errors.exceptions import SettingsError


def main() -> None:
    """Run the tap; an error before it starts is one line, like any other error."""
    try:
        guard_output(sys.argv[1:])
        tune_memory()  # the import of the SDK creates many objects that stay
        check_log_levels(os.environ)
        # Imported here, so that Ctrl-C while the SDK is loaded shows no traceback.
        from tap_audit_events.singer.tap import TapAuditEvents  # noqa: PLC0415

        with log_config_errors(os.environ):
            command = TapAuditEvents.cli  # sets up the log
        command()
    except SettingsError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
