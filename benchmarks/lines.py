"""Counts the lines of the package: all lines, and only those of code."""

import ast
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.candidates import PROJECT

PACKAGE: Final = PROJECT / "tap_audit_events"

OTHER_FACES: Final = ("sandbox", "airbyte", "api", "cli")
"""Folders that the tap does not use."""

CORE: Final = "core"
WHOLE: Final = "package"
CORE_CODE: Final = "core, code"
WHOLE_CODE: Final = "package, code"

_NO_CODE: Final = {
    tokenize.ENCODING, tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE,
    tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def count_lines(package: Path = PACKAGE) -> dict[str, int]:
    """Count the lines of `extraction/` and `service/` together, and of all that the tap uses.

    Each is counted twice: with all lines, and without blank lines, comments and docstrings.
    """

    def count(lines_of: Callable[[Path], int], *folders: Path) -> int:
        return sum(lines_of(path) for folder in folders for path in folder.rglob("*.py"))

    core = (package / "extraction", package / "service")
    others = [package / name for name in OTHER_FACES]
    return {
        CORE: count(_lines, *core),
        WHOLE: count(_lines, package) - count(_lines, *others),
        CORE_CODE: count(_code_lines, *core),
        WHOLE_CODE: count(_code_lines, package) - count(_code_lines, *others),
    }


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def _code_lines(path: Path) -> int:
    """Count the lines without blank lines, comments and docstrings."""
    texts = {
        line
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    with path.open("rb") as file:
        tokens = [each for each in tokenize.tokenize(file.readline) if each.type not in _NO_CODE]
    lines = {line for each in tokens for line in range(each.start[0], each.end[0] + 1)}
    return len(lines - texts)
