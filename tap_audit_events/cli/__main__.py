"""Runs the command: ``audit-events``, and ``python -m tap_audit_events.cli``."""

from __future__ import annotations

import sys

from tap_audit_events.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
