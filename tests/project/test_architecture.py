"""The house: imports run one way, and what is taken from inside the SDK is known."""

import ast
import inspect
import re
from pathlib import Path

import pytest
import singer_sdk

import tap_audit_events
from tap_audit_events.singer.stream import AuditEventsStream
from tap_audit_events.singer.tap import TapAuditEvents

PACKAGE = Path(tap_audit_events.__file__).parent

# From the outside in: a module imports only what stands further down, and the four in one row do
# not know each other.
LAYERS = [
    {"__main__"},
    {"tap"},
    {"streams", "checking"},
    {"workers", "report", "apart"},
    {"client", "export", "delivery", "state", "messages", "stopping", "progress", "bar"},
    {"reading", "failures"},
    {"watermark", "unknown"},
    {"settings", "documents", "pagination", "auth", "environment", "gate", "connections"},
    {"declared", "token_file"},
    {"events", "likely"},
    {"windows", "pacing", "rhythm"},
    {"schema", "selection"},
    {"errors", "timestamps"},
    {"cases", "redaction"},
    {"__init__"},
]
FOR_TYPES_ONLY = {("streams", "tap"), ("checking", "tap"), ("pagination", "events")}
PURE = {
    "events",
    "watermark",
    "delivery",
    "state",
    "windows",
    "rhythm",
    "pacing",
    "errors",
    "cases",
    "timestamps",
    "export",
    "reading",
    "unknown",
    "selection",
}
NOT_IN_PURE = {"requests", "urllib3", "singer_sdk", "socket", "time", "threading", "backoff"}


def modules() -> list[Path]:
    return sorted(PACKAGE.glob("*.py"))


def imports(path: Path) -> set[str]:
    """Every module that a file imports, also for type checking only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def imported_parts(path: Path) -> set[str]:
    prefix = "tap_audit_events."
    return {name.removeprefix(prefix) for name in imports(path) if name.startswith(prefix)}


def layer(name: str) -> int:
    return next(number for number, names in enumerate(LAYERS) if name in names)


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.stem)
def test_imports_run_down_the_house(path: Path) -> None:
    """Never up, never sideways, never into the sandbox."""
    for imported in imported_parts(path):
        if (path.stem, imported) not in FOR_TYPES_ONLY:
            assert layer(path.stem) < layer(imported), f"{path.stem} imports {imported}"


@pytest.mark.parametrize("name", sorted(PURE))
def test_pure_modules_know_no_network_and_no_clock(name: str) -> None:
    """They are tested without any."""
    roots = {imported.split(".")[0] for imported in imports(PACKAGE / f"{name}.py")}
    assert not roots & NOT_IN_PURE


def test_the_sandbox_shares_nothing_with_the_tap() -> None:
    """So that it can judge it."""
    for path in (PACKAGE / "sandbox").glob("*.py"):
        others = {name for name in imported_parts(path) if not name.startswith("sandbox")}
        assert not others, path


def test_the_way_of_an_event_is_short() -> None:
    """A module is read in one sitting."""
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path


ADR = PACKAGE.parent / "docs" / "adr" / "0002-what-is-taken-from-inside-the-sdk.md"
SDK_CLASSES = [*TapAuditEvents.__mro__, *AuditEventsStream.__mro__]


def private_members() -> dict[str, str]:
    """Names with an underscore that the SDK's classes define and this project uses or overrides.

    Each comes with its signature, empty where it is no function.
    """
    text = "\n".join(path.read_text() for path in modules())
    used = set(re.findall(r"\b_[a-z]\w+", text))
    theirs: dict[str, object] = {}
    for cls in SDK_CLASSES:
        if cls.__module__.startswith(singer_sdk.__name__):
            theirs |= {name: vars(cls)[name] for name in used & vars(cls).keys()}
    return {
        name: str(inspect.signature(value)) if inspect.isfunction(value) else ""
        for name, value in theirs.items()
    }


def private_imports() -> set[str]:
    """Modules and names with an underscore that are imported from the SDK."""
    found = set()
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("singer_sdk."):
                found |= {alias.name for alias in node.names if alias.name.startswith("_")}
                found |= {name for name in [node.module or ""] if "._" in name}
    return found


def test_what_is_taken_from_inside_the_sdk_is_listed_with_its_signature() -> None:
    """One page says what it is; a new signature of it is noticed, and so is a stale line."""
    page = ADR.read_text().replace("\\|", "|")
    listed = set(re.findall(r"^\| `(.+?)` \|", page, re.MULTILINE))
    taken = {name + signature for name, signature in private_members().items()}
    assert listed == taken | private_imports()
