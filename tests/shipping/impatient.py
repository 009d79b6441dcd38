"""Runs the command with a short wait for Splunk's acknowledgments."""

from tap_audit_events.cli.command import main
from tap_audit_events.outputs.receivers import splunk

if __name__ == "__main__":
    splunk.ACK_SECONDS = 0.5  # type: ignore[misc]
    raise SystemExit(main())
