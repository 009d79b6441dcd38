"""The catalogue of errors, and the text of each error."""

import re
from pathlib import Path

import pytest

from tap_audit_events.errors import catalogue
from tap_audit_events.errors.catalogue import CATALOGUE, Category
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OrganizationsError,
    SettingsError,
    sanitize,
    service_error,
)
from tests.running import CODED

CODE = re.compile(r"\bAE-[0-9A-Z]+(?:-[A-Z]+)*")
RELEASED = """
    AE-400 AE-401 AE-403 AE-404 AE-429 AE-500 AE-ADDRESS AE-BATCH-FILE AE-BUSY AE-CATALOG
    AE-CERTIFICATE AE-CONNECTION AE-CURSOR-LENGTH AE-CURSOR-REFUSED AE-CURSOR-REPEATED AE-CUT
    AE-DEFECT AE-DIFFERENT AE-EMPTY-PAGES AE-ENVELOPE AE-EVENT AE-EVENT-SIZE AE-EXPORT AE-EXTRA
    AE-FILE AE-GATEWAY AE-LOADED AE-NESTING AE-NO-JSON AE-NO-PROGRESS AE-ORGANIZATIONS AE-OUTPUT
    AE-QUARANTINE AE-RECEIVER AE-RECEIVER-EVENT AE-RECEIVER-REFUSED AE-REDIRECT AE-RETRY-AFTER
    AE-SETTINGS AE-STATE AE-STATUS AE-STOPPED
    AE-STREAM-MAPS AE-TARGET AE-THREADS AE-TIMEOUT AE-TOO-LARGE AE-TOO-MANY-EVENTS AE-WINDOW
"""
"""Codes that alerts may look for: codes are added, never removed."""


def test_the_catalogue_covers_the_interface() -> None:
    """Every status of interface.md, section 7, has an entry, and 429 and 500 are retried."""
    assert {"AE-400", "AE-401", "AE-403", "AE-429", "AE-500"} <= CATALOGUE.keys()
    retried = {code for code, entry in CATALOGUE.items() if entry.category is Category.RETRY}
    assert retried == {
        *("AE-429", "AE-500", "AE-TIMEOUT", "AE-CONNECTION", "AE-CUT", "AE-NO-JSON"),
        *("AE-GATEWAY", "AE-REDIRECT"),
    }


def test_released_codes_stay() -> None:
    """A code that an alert looks for today is in every later version."""
    assert set(RELEASED.split()) == CATALOGUE.keys()


def test_each_code_of_the_catalogue_is_used_and_no_other() -> None:
    """An entry that nothing raises would mislead; a code without an entry has no explanation."""
    source = Path(catalogue.__file__)
    others = [path.read_text() for path in source.parent.parent.rglob("*.py") if path != source]
    assert set(CODE.findall("\n".join(others))) == CATALOGUE.keys()


@pytest.mark.parametrize("code", CATALOGUE)
def test_each_entry_makes_one_line(code: str) -> None:
    """The line has the code, what happened, the context and what to do."""
    line = str(AuditEventsError(code, " (errCode 'x')"))
    assert line == f"{code}: {CATALOGUE[code].summary} (errCode 'x'). {CATALOGUE[code].next_step}"
    assert CODED.match(line)
    assert "\n" not in line


def test_several_lines_become_one_text() -> None:
    """Lines that end like sentences are joined by a space, others by a semicolon."""
    errors = {name: AuditEventsError("AE-CUT") for name in "ab"}
    assert str(SettingsError(["a is wrong", "b is wrong"])) == (
        "AE-SETTINGS: a is wrong; AE-SETTINGS: b is wrong"
    )
    assert ".;" not in str(OrganizationsError(errors, 2))
    assert str(OrganizationsError(errors, 2)) == " ".join(OrganizationsError(errors, 2).lines)


def test_an_error_of_the_service_names_the_window() -> None:
    """The window follows the details from the response."""
    error = service_error("AE-500", details="errCode 'x'")
    error.window = "up to now"
    assert error.summary == "AE-500: The service failed (errCode 'x'), in the window up to now"


def test_sanitized_text_is_bounded_and_quoted() -> None:
    """A text from outside becomes one quoted line, which is cut with an ellipsis."""
    assert sanitize("a\n\x00b") == r"'a\n\x00b'"
    assert sanitize("x" * 400, 3) == "'xxx…'"


def test_a_line_for_each_reason_says_how_many_organizations_were_not_started() -> None:
    errors = {"one": service_error("AE-500"), "other": service_error("AE-EVENT")}
    down, refused = ("AE-500", "it is down"), ("AE-401", "it refuses them")
    not_started = {"x": down, "y": refused, "z": down}
    *_, first, second = OrganizationsError(errors, 5, not_started=not_started).lines
    assert first == "AE-500: 2 more organizations were not started, because it is down"
    assert second == "AE-401: 1 more organization was not started, because it refuses them"
