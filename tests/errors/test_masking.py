"""Secrets are masked in text, in logs and on stderr, however they are written."""

import html
import io
import json
import logging
import logging.handlers
import re
import sys
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from singer_sdk.logging import StructuredFormatter
from singer_sdk.singerlib import SchemaMessage, StateMessage

from tap_audit_events.errors import redaction
from tap_audit_events.errors.redacted_output import (
    MAX_RECORD_LENGTH,
    redact_logs,
    redact_stderr,
)
from tap_audit_events.errors.redaction import (
    MASK,
    MIN_SECRET_LENGTH,
    contains_secret,
    redact,
    redact_json,
    register_possible_secret,
    register_secret,
)
from tap_audit_events.events.instants import parse_instant
from tap_audit_events.extraction.id_groups import Group, digests_of
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.state import to_bookmark
from tests.running import forms_of

TOKEN = "acme_pat_9+/=&<\"X\\y'%Zz"
"""Every escape changes it."""


@pytest.fixture(autouse=True)
def fresh_redaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has its own secrets, log handling and stderr."""
    monkeypatch.setattr(redaction, "_secrets", [])
    monkeypatch.setattr(logging.Handler, "handle", logging.Handler.handle)
    monkeypatch.setattr(sys, "stderr", io.StringIO())


# Forms


def in_unicode_escapes(text: str) -> str:
    return "".join(f"\\u{ord(character):04X}" for character in text)


def in_page_codes(text: str) -> str:
    return "".join(f"&#x{ord(character):x};" for character in text)


def escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


FORMS: list[Callable[[str], str]] = [
    str,
    escaped,
    lambda token: escaped(escaped(token)),
    lambda token: repr(token)[1:-1],
    lambda token: repr(token.encode())[2:-1],
    quote,
    lambda token: quote(token, safe=""),
    lambda token: quote(quote(token, safe=""), safe=""),
    lambda token: "".join(f"%{byte:02x}" for byte in token.encode()),
    html.escape,
    in_page_codes,
    in_unicode_escapes,
    lambda token: escaped(token).replace("/", "\\/"),
    str.lower,
    str.upper,
    lambda token: quote(token.upper(), safe=""),
]

WIDE_FORMS: list[Callable[[str], str]] = [
    lambda token: token.encode("utf-16-le").decode().rstrip("\0"),
    lambda token: repr(token.encode("utf-16-le").decode().rstrip("\0"))[1:-1],
    lambda token: repr(token.encode("utf-16-be").lstrip(b"\0"))[2:-1],
    lambda token: escaped(token.encode("utf-16-le").decode().rstrip("\0")),
    lambda token: escaped(repr(token.encode("utf-16-le").rstrip(b"\0"))[2:-1]),
    lambda token: quote(token.encode("utf-16-be").lstrip(b"\0"), safe=""),
    lambda token: token.encode("utf-32-le").decode().rstrip("\0"),
    lambda token: token.encode("utf-16-le").decode().rstrip("\0").replace("\0", "\ufffd"),
]
TOKENS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=MIN_SECRET_LENGTH)


@pytest.mark.parametrize("form", FORMS)
@given(token=TOKENS)
def test_every_form_of_a_token_is_masked(form: Callable[[str], str], token: str) -> None:
    """Whatever characters it has; the text around it stays."""
    redaction._secrets.clear()
    register_secret(token)
    assert redact(f"Bearer {form(token)} é\n") == f"Bearer {MASK} é\n"


@pytest.mark.parametrize("form", WIDE_FORMS)
@given(token=st.from_regex(r"[A-Za-z][A-Za-z0-9._~+/=-]{5,30}", fullmatch=True))
def test_a_token_in_utf_16_or_utf_32_is_masked(form: Callable[[str], str], token: str) -> None:
    """For tokens as RFC 6750 defines them: backslashes among NULs would be ambiguous."""
    redaction._secrets.clear()
    register_secret(token)
    assert redact(f"Bearer {form(token)} é\n") == f"Bearer {MASK} é\n"


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("times", [1, 2, 4])
def test_backslashes_of_a_token_are_masked_however_often_they_are_escaped(
    count: int, times: int
) -> None:
    """As it is, as JSON writes it, and as JSON in JSON; nothing around it is masked."""
    backslash = "\\"
    register_secret(f"pat_{backslash * count}x")
    text = f"pat_{backslash * count * times}x"
    assert redact(f"<{text}>") == f"<{MASK}>"
    assert redact(f"<{text[:-1]}>") == f"<{text[:-1]}>"


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("nuls", [1, 3])
def test_backslashes_among_nuls_are_masked(count: int, nuls: int) -> None:
    """UTF-16 and UTF-32 that is shown as if it were Latin-1."""
    register_secret("pat_" + "\\" * count + "x")
    text = "".join(each + "\0" * nuls for each in "pat_" + "\\" * count + "x").rstrip("\0")
    assert redact(f"<{text}>") == f"<{MASK}>"


def test_only_a_certain_secret_is_contained() -> None:
    """A text that could be a token may be a part of a schema or a setting as well."""
    assert not contains_secret(TOKEN)
    register_possible_secret(TOKEN)
    assert not contains_secret(f"<{TOKEN}>")
    register_secret(TOKEN)
    assert contains_secret(f"<{TOKEN}>")
    assert not contains_secret("something else")


@given(tokens=st.lists(TOKENS, min_size=2, max_size=4))
def test_every_token_so_far_stays_secret(tokens: list[str]) -> None:
    """A token that was replaced during the run is still masked."""
    redaction._secrets.clear()
    for token in tokens:
        register_secret(token)
    masked = redact(" ".join(tokens)).replace(MASK, "\0")
    assert not any(token in masked for token in tokens)


def test_a_token_that_begins_as_another_is_masked_whole() -> None:
    """For example if a file was read while it was being written."""
    register_secret(TOKEN[:10])
    register_secret(TOKEN)
    assert redact(f"{TOKEN} {TOKEN[:10]}") == f"{MASK} {MASK}"


def test_a_possible_secret_is_masked_in_text_only() -> None:
    """Until it turns out to be the secret."""
    register_possible_secret(TOKEN)
    assert redact(TOKEN) == MASK
    assert redact_json({"names": [TOKEN]}) == {"names": [TOKEN]}
    register_secret(TOKEN)
    register_possible_secret(TOKEN)
    assert redact_json({"names": [TOKEN], TOKEN: 1}) == {"names": [MASK], MASK: 1}


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
def test_no_log_record_goes_around_the_mask(how: str, collected: Collected) -> None:
    """Whatever its logger, level and handler."""
    LOGGED[how](logging.getLogger("some.library"))
    assert_discreet("\n".join(collected.sent))


def test_a_traceback_is_logged_without_the_token(collected: Collected) -> None:
    """Everything else in it stays, down to the cause."""
    try:
        failing()
    except RuntimeError:
        logging.getLogger("some.library").exception("It failed")
    assert_discreet("\n".join(collected.sent))
    assert "It failed\nTraceback" in collected.sent[0]
    assert f"ValueError: inner {MASK}" in collected.sent[0]


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
    """Handlers still get its arguments, as for metrics."""
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


def test_nothing_else_on_stderr_shows_the_token() -> None:
    """Direct writes, and tracebacks of the interpreter itself."""
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


# STATE and SCHEMA


def test_state_and_schema_never_hold_the_token() -> None:
    """If an id, or a property in a catalog, is the token."""
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
    """A short token may occur in base64: a mask there would make every event come again."""
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
