"""Counts the lines of the package, blank lines and comments included."""

from pathlib import Path
from typing import Final

from benchmarks.candidates import PROJECT

PACKAGE: Final = PROJECT / "tap_audit_events"

CORE: Final = "core"
WHOLE: Final = "package"


def count_lines(package: Path = PACKAGE) -> dict[str, int]:
    """Lines of `extraction/` and `service/` together, and of all but the sandbox."""
    core = _lines(package / "extraction") + _lines(package / "service")
    return {CORE: core, WHOLE: _lines(package) - _lines(package / "sandbox")}


def _lines(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in folder.rglob("*.py"))
