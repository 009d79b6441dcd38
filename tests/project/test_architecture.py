"""Modules are short, and the private names of the SDK that are used are listed in ADR 0002."""

import ast
import inspect
import re
from pathlib import Path

import singer_sdk

import tap_audit_events
from tap_audit_events.singer.stream import AuditEventsStream
from tap_audit_events.singer.tap import TapAuditEvents

PACKAGE = Path(tap_audit_events.__file__).parent


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "sandbox" not in path.parts)


def test_modules_are_short() -> None:
    """A module can be read in one sitting."""
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path


ADR = PACKAGE.parent / "docs" / "adr" / "0002-what-is-taken-from-inside-the-sdk.md"
SDK_CLASSES = [*TapAuditEvents.__mro__, *AuditEventsStream.__mro__]


def private_members() -> dict[str, str]:
    """Return the private names of the SDK's classes that this project uses or overrides.

    The value of each is its signature, which is empty if it is not a function.
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
    """Return the private modules and names that are imported from the SDK."""
    found = set()
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("singer_sdk."):
                found |= {alias.name for alias in node.names if alias.name.startswith("_")}
                found |= {name for name in [node.module or ""] if "._" in name}
    return found


def test_private_names_of_the_sdk_that_are_used_are_listed_with_their_signatures() -> None:
    """The test fails if a signature in the SDK changes, or if the list in ADR 0002 is stale."""
    page = ADR.read_text().replace("\\|", "|")
    listed = set(re.findall(r"^\| `(.+?)` \|", page, re.MULTILINE))
    taken = {name + signature for name, signature in private_members().items()}
    assert listed == taken | private_imports()
