"""Runs the tap: the command ``tap-audit-events``, and ``python -m tap_audit_events``."""

from __future__ import annotations

import atexit
import logging
import os
import sys

from tap_audit_events.config.access_token import possible_tokens
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.errors.redacted_output import redact_logs, redact_stderr
from tap_audit_events.errors.redaction import register_possible_secret
from tap_audit_events.output import replace_closed_stderr

_LEVELS = ("TAP_AUDIT_EVENTS_LOGLEVEL", "LOGLEVEL")
_LOG_CONFIG = "SINGER_SDK_LOG_CONFIG"


def main() -> None:
    """Run the tap; an error before it starts is one line too."""
    redact_stderr()
    redact_logs()
    for text in possible_tokens(sys.argv[1:]):
        register_possible_secret(text)
    atexit.register(replace_closed_stderr)
    for name in _LEVELS:
        level = os.environ.get(name, "")
        if level and level.upper() not in logging.getLevelNamesMapping():
            sys.exit(
                f"AE-SETTINGS: {name} is not a log level: set it to DEBUG, INFO, WARNING or ERROR"
            )
    try:
        # Imported here, so that Ctrl-C while the SDK is loaded shows no traceback.
        from tap_audit_events.singer.tap import TapAuditEvents  # noqa: PLC0415

        log_config = os.environ.pop(_LOG_CONFIG, None)  # else the SDK would read the file itself
        command = TapAuditEvents.cli  # sets up the SDK's own log
        if log_config:
            from tap_audit_events.config.log_config import configure_logging  # noqa: PLC0415

            configure_logging(log_config)
            TapAuditEvents.logger.disabled = False  # the file may disable loggers that exist
        command()
    except SettingsError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
