"""The names of the package are imported when they are first used, without heavy libraries."""

import pydoc
import subprocess
import sys

import pytest

import tap_audit_events


@pytest.mark.parametrize("name", tap_audit_events.__all__)
def test_each_public_name_can_be_imported(name: str) -> None:
    assert getattr(tap_audit_events, name).__name__ == name


def test_help_describes_the_public_names() -> None:
    """The completion in a notebook lists them too."""
    text = pydoc.render_doc(tap_audit_events)
    assert "Read the events of a range, a page at a time." in text
    assert dir(tap_audit_events) == sorted(tap_audit_events.__all__)


def test_any_other_name_is_an_error() -> None:
    """A type checker reports it too; otherwise, it would report the comment as unused."""
    with pytest.raises(AttributeError, match="no attribute 'AuditEvent'"):
        tap_audit_events.AuditEvent  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("from tap_audit_events import AuditEvents", ("singer_sdk", "pyarrow", "click")),
        ("import tap_audit_events", ("singer_sdk", "pyarrow", "click", "requests", "msgspec")),
    ],
)
def test_importing_the_package_imports_nothing_heavy(code: str, absent: tuple[str, ...]) -> None:
    """The import loads neither the Singer SDK nor Arrow, starts no thread and configures no log."""
    checks = (
        "import logging, sys, threading; assert not logging.root.handlers;"
        " assert threading.active_count() == 1; print(*sys.modules)"
    )
    command = [sys.executable, "-c", f"{code}; {checks}"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "tap_audit_events" in loaded
    assert [name for name in loaded if name.split(".")[0] in absent] == []
