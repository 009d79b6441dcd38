"""The sandbox can judge the tap because they share no code."""

import ast
from pathlib import Path

import pytest

import tap_audit_events.sandbox

FOLDER = Path(tap_audit_events.sandbox.__file__).parent


def imported(module: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or ".")
    return names


@pytest.mark.parametrize("module", sorted(FOLDER.glob("*.py")), ids=lambda module: module.stem)
def test_a_module_imports_nothing_of_the_tap(module: Path) -> None:
    """Except how the package was installed, which has nothing to do with the service."""
    own = {name for name in imported(module) if name.startswith(("tap_audit_events", "."))}
    own.discard("tap_audit_events.installation")
    assert all(name.startswith("tap_audit_events.sandbox") for name in own)
