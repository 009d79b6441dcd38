"""Modules are short. `make check` tests which folder imports which."""

from pathlib import Path

import tap_audit_events

PACKAGE = Path(tap_audit_events.__file__).parent


def test_modules_are_short() -> None:
    """A module can be read in one sitting."""
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path
