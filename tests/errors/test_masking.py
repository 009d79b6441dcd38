"""Secrets are masked in text, in logs and on stderr, however they are written."""

import io
import json
import logging
import logging.handlers
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

import pytest
from singer_sdk.logging import StructuredFormatter
from singer_sdk.singerlib import SchemaMessage, StateMessage

from tap_audit_events.config.access_token import mask_possible_tokens
from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.config.settings import read_settings, register_secrets
from tap_audit_events.errors import redaction
from tap_audit_events.errors.exceptions import sanitize, sanitize_start
from tap_audit_events.errors.redacted_output import (
    MAX_RECORD_LENGTH,
    redact_logs,
    redact_stderr,
)
from tap_audit_events.errors.redaction import (
    MASK,
    MIN_SECRET_LENGTH,
    redact,
    register_secret,
)
from tap_audit_events.events.instants import parse_instant
from tap_audit_events.extraction.id_groups import Group
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.state import to_bookmark
from tests.builders import ORGANIZATION_ID
from tests.extraction.watermarks import digests_of
from tests.running import forms_of

TOKEN = "acme_pat_9+/=&<\"X\\y'%Zz"
"""A token that every kind of escaping changes."""


@pytest.fixture(autouse=True)
def fresh_redaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has its own secrets, log handling and stderr."""
    monkeypatch.setattr(redaction, "_secrets", redaction._Secrets())
    monkeypatch.setattr(logging.Handler, "handle", logging.Handler.handle)
    monkeypatch.setattr(sys, "stderr", io.StringIO())


# The log


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


def failing() -> None:
    try:
        raise ValueError(f"inner {TOKEN}")
    except ValueError as error:
        raise RuntimeError(f"Bearer {TOKEN}") from error


LOGGED: dict[str, Callable[[logging.Logger], object]] = {
    "message": lambda logger: logger.info(f"is {TOKEN}"),
    "argument": lambda logger: logger.info("is %s, %r", TOKEN, {"Authorization": TOKEN}),
    "split": lambda logger: logger.info("%s%s", TOKEN[:6], TOKEN[6:]),
    "percent": lambda logger: logger.info("100 %% of %s", TOKEN),
    "URL": lambda logger: logger.debug("GET /v1?cursor=%s", quote(TOKEN, safe="").lower()),
    "extra": lambda logger: logger.info("x", extra={"config": {"access_token": TOKEN}}),
    "stack": lambda logger: logger.handle(
        logging.makeLogRecord({"msg": "x", "stack_info": TOKEN, "levelno": 30})
    ),
    "name": lambda logger: logger.getChild(TOKEN).warning("x"),
}


@pytest.fixture
def collected() -> Iterator[Collected]:
    """A handler that is added after the redaction of logs has begun."""
    register_secret(TOKEN)
    redact_logs()
    handler, logger = Collected(), logging.getLogger("some.library")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)


def assert_discreet(text: str) -> None:
    assert MASK in text
    assert not [form for form in forms_of(TOKEN) if form in text.lower()]


@pytest.mark.parametrize("how", LOGGED)
def test_every_log_record_is_masked(how: str, collected: Collected) -> None:
    """The token may be in any part of a record, and the logger, level and handler do not matter."""
    LOGGED[how](logging.getLogger("some.library"))
    assert_discreet("\n".join(collected.sent))


def test_a_traceback_is_logged_without_the_token(collected: Collected) -> None:
    """The rest of the traceback stays, including the error's cause."""
    try:
        failing()
    except RuntimeError:
        logging.getLogger("some.library").exception("It failed")
    assert_discreet("\n".join(collected.sent))
    assert "It failed\nTraceback" in collected.sent[0]
    assert f"ValueError: inner {MASK}" in collected.sent[0]


def hides_an_error() -> None:
    try:
        raise ValueError(f"inner {TOKEN}")
    except ValueError:
        raise RuntimeError("outer") from None


def raised_from_one_that_hides() -> None:
    try:
        hides_an_error()
    except RuntimeError as error:
        raise LookupError("last") from error


def raised_after_one_that_hides() -> None:
    try:
        hides_an_error()
    except RuntimeError:
        raise LookupError("last")  # noqa: B904 - as most code does


@pytest.mark.parametrize(
    "fail", [hides_an_error, raised_from_one_that_hides, raised_after_one_that_hides]
)
def test_an_error_that_another_hides_is_not_logged(
    fail: Callable[[], None], collected: Collected
) -> None:
    """A traceback leaves out what ``from None`` hides, while the SDK's formatter would show it."""
    try:
        fail()
    except (RuntimeError, LookupError):
        logging.getLogger("some.library").exception("It failed")
    text = "\n".join(collected.sent)
    assert "RuntimeError: outer" in text
    assert not [form for form in forms_of(TOKEN) if form in text.lower()]


@pytest.mark.parametrize("has_traceback", [True, False])
def test_a_long_record_is_cut(has_traceback: bool, collected: Collected) -> None:
    """A library may log headers of many megabytes, as a message or in a traceback."""
    logger = logging.getLogger("some.library")
    if has_traceback:
        try:
            raise ValueError("x" * 10 * MAX_RECORD_LENGTH)
        except ValueError:
            logger.exception("It failed")
    else:
        logger.warning("%s", "x" * 10 * MAX_RECORD_LENGTH)
    assert collected.sent[0].endswith("xxx…")
    assert len(max(collected.sent, key=len)) < 3 * MAX_RECORD_LENGTH


def test_a_record_without_the_token_is_left_alone(collected: Collected) -> None:
    """Handlers still receive its message, its arguments and its exception."""
    seen = []

    class Seeing(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            seen.append((record.msg, record.args, record.exc_info))
            return True

    collected.addFilter(Seeing())
    try:
        raise ValueError("harmless")
    except ValueError:
        logging.getLogger("some.library").exception("100 %s", "harmless")
    ((message, arguments, exc_info),) = seen
    assert (message, arguments) == ("100 %s", ("harmless",))
    assert exc_info is not None


def test_a_record_that_cannot_be_formatted_shows_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The logging package reports such a record on stderr, with its arguments."""
    register_secret(TOKEN)
    stderr = sys.stderr = io.StringIO()
    redact_stderr()
    redact_logs()
    logger = logging.getLogger("some.library")
    monkeypatch.setattr(logger, "propagate", False)  # to pytest, which would raise the error
    logger.addHandler(handler := logging.StreamHandler(io.StringIO()))
    logger.warning("%d", TOKEN)
    logger.removeHandler(handler)
    assert_discreet(stderr.getvalue())


# Stderr


def test_other_texts_on_stderr_show_no_token() -> None:
    """Direct writes and the interpreter's own tracebacks are masked too."""
    register_secret(TOKEN)
    stderr = sys.stderr = io.StringIO()
    redact_stderr()
    redact_stderr()
    sys.stderr.writelines(["is ", TOKEN])
    try:
        failing()
    except RuntimeError as error:
        sys.__excepthook__(type(error), error, error.__traceback__)
    assert_discreet(stderr.getvalue())
    assert stderr.getvalue().count(MASK) == 3


# Messages


def test_a_secret_that_a_message_cuts_is_not_shown_in_part() -> None:
    """The message, the part of a long text that is read, or the text itself may end within it."""
    register_secret(TOKEN)
    wide = (3 * "\\u0000").join(TOKEN)
    shown = [
        sanitize(290 * "x" + TOKEN),
        sanitize_start(f"{wide} ".encode() * 100, 1000),
        sanitize_start(TOKEN[:-1].encode(), is_cut=True),
    ]
    assert not [each for each in shown if "acme" in re.sub(r"\\+u0000", "", each)]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("acme_pat_a/secret7x2", "is acme_pat_a/secret7x2"),
        ("https://host/acme_pat_a.secret7x2", "GET /acme_pat_a.secret7x2?x=1"),
        ({"acme_pat_a.secret7x2": None}, "is acme_pat_a.secret7x2"),
        ("--test=acme_pat_a/secret7x2==", "invalid: 'acme_pat_a/secret7x2=='"),
        (MappingProxyType({"acme_pat_a/secret7x2": 1}), "is 'acme_pat_a/secret7x2'"),
    ],
)
def test_a_text_that_may_be_a_token_is_masked_to_its_end(given: object, shown: str) -> None:
    """A token may contain characters that a name does not (RFC 6750, section 2.1)."""
    mask_possible_tokens([given])
    assert "secret" not in redact(shown)


@pytest.mark.parametrize(
    "name",
    [
        *("user_pat_created", "pat_revoked_v2", "compat_mode", "pat_2fa_enabled", "PAT_CREATED"),
        *("pat_workspaceMemberRoleChanged", "/run/secrets/acme_pat_token", "pat_oauth2_api_key"),
    ],
)
def test_words_in_a_setting_are_not_masked(name: str) -> None:
    """An action type or a path with the mark of a token in it is none: it has no random part."""
    register_secrets(
        {
            "access_token": "acme_pat_0a1b2c3d4e5f",
            "action_types": [name],
            "access_token_file": name,
            "stream_maps": {"audit_events": {name: "1"}},
        }
    )
    assert redact(f"of {name}") == f"of {name}"
    assert redact("acme_pat_0a1b2c3d4e5f") == MASK


@pytest.mark.parametrize(
    "config",
    [
        {"acces_token": "acme_pat_of-words"},
        {"organizations": "[{'access_token': 'acme_pat_of-words'"},
        {"access_token": "Bearer acme_pat_of-words"},
    ],
)
def test_words_in_a_place_of_tokens_are_masked(config: dict[str, str]) -> None:
    """This includes a misspelt name."""
    register_secrets(config)
    assert redact("is acme_pat_of-words") == f"is {MASK}"


def test_each_token_of_the_settings_is_masked(tmp_path: Path) -> None:
    """Tokens in files, and tokens in settings that are incomplete, are masked too."""
    path = tmp_path / "token"
    path.write_text("first-of-another-kind")
    items = [{"organization_id": ORGANIZATION_ID, "access_token_file": str(path)}]
    read_settings({"base_url": "https://host", "organizations": items})
    register_secrets({"organizations": [{"access_token": "second-of-another-kind"}]})
    assert redact("first-of-another-kind, second-of-another-kind") == f"{MASK}, {MASK}"


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        (name, schema["type"])
        for name, schema in SETTINGS_SCHEMA["properties"].items()
        if schema.get("secret")
    ],
)
def test_each_secret_setting_is_masked(name: str, kinds: list[str]) -> None:
    """The names are those of the schema, so a secret setting that is added later is tested too."""
    value = "of-another-kind"
    register_secrets({name: [{"access_token": value}] if "array" in kinds else value})
    assert redact(value) == MASK


# STATE and SCHEMA


def test_state_and_schema_never_hold_the_token() -> None:
    """The token may be the id of an event or a property in a catalog."""
    register_secret(TOKEN)
    writer = MessageWriter()
    messages = [
        StateMessage({"bookmarks": {"audit_events": {"ids": ["1", TOKEN, '","'], "n": 10**30}}}),
        SchemaMessage("audit_events", {"properties": {TOKEN: {"description": TOKEN}}}, ["id"]),
    ]
    for message in messages:
        line = writer.format_message(message).decode()
        assert_discreet(line)
        assert json.loads(line)
    assert json.loads(writer.format_message(messages[0]))["value"] == {
        "bookmarks": {"audit_events": {"ids": ["1", MASK, '","'], "n": 10**30}}
    }


def test_digests_in_state_are_never_masked() -> None:
    """A short token may occur in base64; after a mask there, the next run would repeat events."""
    watermark = Watermark(
        parse_instant("2024-05-06T08:00:00Z"),
        [Group(parse_instant("2024-05-06T08:00:00Z"), digests_of(map(str, range(500))))],
        lookback_seconds=300,
    )
    bookmark = to_bookmark(watermark, organization_id="x", action_types=["kept"])
    (entry,) = bookmark["watermark"]
    text = str(max(entry["ids"], key=lambda each: len(str(each))))
    token = max(re.findall("[A-Za-z0-9]+", text), key=len)[:MIN_SECRET_LENGTH]
    assert len(token) == MIN_SECRET_LENGTH
    register_secret(token)
    state = {"bookmarks": {"audit_events": bookmark | {"note": f"is {token}"}}}
    line = MessageWriter().serialize_message(StateMessage(value=state))
    left = json.loads(line)["value"]["bookmarks"]["audit_events"]
    assert left["watermark"][0]["ids"] == entry["ids"]
    assert left["note"] == f"is {MASK}"


def test_a_closed_stderr_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise Python could not flush it at exit, and a good run would end with exit code 120."""
    monkeypatch.setattr(sys, "stderr", None)
    redact_stderr()
    assert sys.stderr is None
