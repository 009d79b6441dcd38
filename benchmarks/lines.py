"""Counts the lines of the package, blank lines and comments included."""

from pathlib import Path
from typing import Final

from benchmarks.candidates import PROJECT

PACKAGE: Final = PROJECT / "tap_audit_events"

OTHER_FACES: Final = ("sandbox", "airbyte", "api", "cli")
"""What the tap does not use."""

CORE: Final = "core"
WHOLE: Final = "package"


def count_lines(package: Path = PACKAGE) -> dict[str, int]:
    """Lines of `extraction/` and `service/` together, and of all that the tap uses."""
    core = _lines(package / "extraction") + _lines(package / "service")
    others = sum(_lines(package / name) for name in OTHER_FACES)
    return {CORE: core, WHOLE: _lines(package) - others}


def _lines(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in folder.rglob("*.py"))
