"""Runs the tap: ``python -m tap_audit_events``."""

from __future__ import annotations

from tap_audit_events.tap import TapAuditEvents

if __name__ == "__main__":
    TapAuditEvents.cli()
