"""Runs the command: ``audit-events``, and ``python -m tap_audit_events.cli``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command, and return its exit code."""
    try:
        # Imported here, so that Ctrl-C during the import shows no traceback.
        from tap_audit_events.cli.command import main as run  # noqa: PLC0415
    except KeyboardInterrupt:
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
