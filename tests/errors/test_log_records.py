"""Secrets are masked in log records, whatever a handler does with them, and in nobody else's."""

import json
import logging
import logging.handlers
import subprocess
import sys
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from singer_sdk.logging import StructuredFormatter

from tap_audit_events.errors.redacted_output import (
    MAX_RECORD_LENGTH,
    redact_record,
)
from tap_audit_events.errors.redaction import MASK, register_secret
from tests.config.test_settings import GOOD
from tests.errors.test_redaction import TOKEN
from tests.running import forms_of

pytestmark = pytest.mark.usefixtures("no_secrets")

logger = logging.getLogger("some.library")


class Collected(logging.handlers.SocketHandler):
    """A handler that collects each record as formatted, structured and pickled."""

    def __init__(self) -> None:
        super().__init__("", 0)
        self.sent: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        structured = StructuredFormatter().format(record)
        assert json.loads(structured)
        self.sent += [self.format(record), structured, repr(vars(record))]
        self.sent.append(self.makePickle(record).decode("latin-1"))

    @property
    def text(self) -> str:
        return "\n".join(self.sent)


@pytest.fixture
def collected() -> Iterator[Collected]:
    """A handler of a command, with the filter."""
    register_secret(TOKEN)
    handler = Collected()
    handler.addFilter(redact_record)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)


def shows_token(text: str) -> bool:
    return any(form in text.lower() for form in forms_of(TOKEN))


@pytest.mark.parametrize(
    "log",
    [
        lambda: logger.info(f"is {TOKEN}"),
        lambda: logger.info("is %s, %r", TOKEN, {"Authorization": TOKEN}),
        lambda: logger.info("%s%s", TOKEN[:6], TOKEN[6:]),
        lambda: logger.info("100 %% of %s", TOKEN),
        lambda: logger.info("%d", TOKEN),  # which cannot be formatted
        lambda: logger.debug("GET /v1?cursor=%s", quote(TOKEN, safe="").lower()),
        lambda: logger.info("x", extra={"config": {"access_token": TOKEN}}),
        lambda: logger.handle(logging.makeLogRecord({"stack_info": TOKEN, "levelno": 30})),
        lambda: logger.getChild(TOKEN).warning("x"),
    ],
)
def test_every_part_of_a_record_is_masked(log: Callable[[], None], collected: Collected) -> None:
    log()
    assert MASK in collected.text
    assert not shows_token(collected.text)


def failing() -> None:
    try:
        raise ValueError(f"inner {TOKEN}")
    except ValueError as error:
        raise RuntimeError(f"Bearer {TOKEN}") from error


def hides_an_error() -> None:
    try:
        raise ValueError(f"inner {TOKEN}")
    except ValueError:
        raise RuntimeError("outer") from None


@pytest.mark.parametrize("fail", [failing, hides_an_error])
def test_a_traceback_is_logged_without_the_token(
    fail: Callable[[], None], collected: Collected
) -> None:
    """The rest stays, with the cause; the SDK's formatter also shows what ``from None`` hides."""
    try:
        fail()
    except RuntimeError:
        logger.exception("It failed")
    assert "It failed\nTraceback" in collected.sent[0]
    assert "RuntimeError: " in collected.sent[0]
    assert not shows_token(collected.text)


@pytest.mark.parametrize("has_traceback", [True, False])
def test_a_long_record_is_cut(has_traceback: bool, collected: Collected) -> None:
    """A library may log headers of many megabytes, as a message or in a traceback."""
    error = ValueError("x" * 10 * MAX_RECORD_LENGTH) if has_traceback else None
    logger.warning("%s", "x" * (9 if has_traceback else 10 * MAX_RECORD_LENGTH), exc_info=error)
    assert collected.sent[0].endswith("xxx…")
    assert len(max(collected.sent, key=len)) < 3 * MAX_RECORD_LENGTH


PROGRAM = f"""
import logging, sys
before = logging.Handler.handle, sys.stderr, sys.excepthook, logging.getLogRecordFactory()
handler = logging.StreamHandler(sys.stdout)
logging.getLogger().addHandler(handler)
from tap_audit_events import AuditEvents
from tap_audit_events.singer.tap import TapAuditEvents
settings = {GOOD | {"access_token": TOKEN}!r}
AuditEvents(**settings)
TapAuditEvents(config=settings)
assert before == (
    logging.Handler.handle, sys.stderr, sys.excepthook, logging.getLogRecordFactory()
)
assert logging.getLogger().handlers == [handler]
assert not handler.filters and not logging.getLogger().filters
assert logging.getLogger("urllib3.connection").level == logging.NOTSET
for name in ("tap_audit_events", "tap-audit-events", "tap-audit-events.audit_events"):
    logging.getLogger(name).warning("ours: %s", settings["access_token"])
logging.getLogger("their.own").warning("theirs: %s", settings["access_token"])
"""


def test_the_logging_of_a_program_that_imports_the_package_is_untouched() -> None:
    """Its handlers get the package's records masked, and its own records as they are."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *ours, theirs = done.stdout.splitlines()
    assert ours == [f"ours: {MASK}"] * 3
    assert theirs == f"theirs: {TOKEN}"
