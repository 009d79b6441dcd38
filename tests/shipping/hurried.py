"""Runs the command with waits that take a hundredth of their time."""

from tap_audit_events.cli.command import main
from tap_audit_events.extraction.shutdown import Stop

_wait = Stop.wait


def _wait_less(stop: Stop, seconds: float) -> None:
    _wait(stop, seconds / 100)


if __name__ == "__main__":
    Stop.wait = _wait_less  # type: ignore[method-assign, assignment]
    raise SystemExit(main())
