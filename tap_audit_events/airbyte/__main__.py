"""Runs the Airbyte source: ``source-audit-events``, and ``python -m tap_audit_events.airbyte``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command, and exit with its exit code."""
    arguments = sys.argv[1:]
    try:
        # Imported here, so that Ctrl-C during the import shows no traceback.
        from tap_audit_events.config.process import guard_output  # noqa: PLC0415

        guard_output(arguments)
        stdout, sys.stdout = sys.stdout, sys.stderr  # for messages only
        from tap_audit_events.airbyte.command_line import run  # noqa: PLC0415
        from tap_audit_events.airbyte.messages import AirbyteWriter  # noqa: PLC0415

        exit_code = run(arguments, AirbyteWriter(stdout))
    except KeyboardInterrupt:
        exit_code = 130
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
