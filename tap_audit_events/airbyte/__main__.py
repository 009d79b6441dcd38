"""Runs the Airbyte source: ``source-audit-events``, and ``python -m tap_audit_events.airbyte``."""

from __future__ import annotations

import atexit
import sys

from tap_audit_events.config.access_token import possible_tokens
from tap_audit_events.config.process import replace_closed_stderr
from tap_audit_events.errors.redacted_output import redact_stderr
from tap_audit_events.errors.redaction import register_possible_secret


def main() -> None:
    """Run the command of the command line, and exit with its exit code."""
    redact_stderr()
    stdout, sys.stdout = sys.stdout, sys.stderr  # whatever else is printed is no message
    arguments = sys.argv[1:]
    for text in possible_tokens(arguments):
        register_possible_secret(text)
    atexit.register(replace_closed_stderr)
    try:
        # Imported here, so that Ctrl-C meanwhile shows no traceback.
        from tap_audit_events.airbyte.command_line import run  # noqa: PLC0415
        from tap_audit_events.airbyte.messages import MessageWriter  # noqa: PLC0415

        exit_code = run(arguments, MessageWriter(stdout))
    except KeyboardInterrupt:
        exit_code = 130
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
