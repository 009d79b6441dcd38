"""Runs the command with small parts, so that a short export commits many."""

from tap_audit_events.cli.command import main
from tap_audit_events.outputs.output import Output

if __name__ == "__main__":
    Output.PART_EVENTS = 10
    raise SystemExit(main())
