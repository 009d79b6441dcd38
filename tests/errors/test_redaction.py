"""The access token leaves the process only in the Authorization header."""

import html
import io
import json
import logging
import logging.handlers
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from singer_sdk.logging import StructuredFormatter
from singer_sdk.singerlib import SchemaMessage, StateMessage

from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors import redaction
from tap_audit_events.errors.catalogue import CATALOGUE
from tap_audit_events.errors.redacted_output import (
    MAX_RECORD_LENGTH,
    redact_logs,
    redact_stderr,
)
from tap_audit_events.errors.redaction import (
    MASK,
    MIN_SECRET_LENGTH,
    redact,
    redact_json,
    register_possible_secret,
    register_secret,
)
from tap_audit_events.events.instants import parse_instant
from tap_audit_events.extraction.id_groups import Group, digests_of
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.state import to_bookmark
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.config.test_settings import GOOD
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.running import Run, forms_of, run
from tests.singer.test_stopping import Start, start, wait_for_log  # noqa: F401 - a fixture

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


def test_a_record_is_the_services_own_data(service: Service, sync: Sync) -> None:
    """An event that contains the token is delivered unchanged; STATE does not contain the token."""
    service.add([an_event(id=service.access_token, actor={"name": f"is {service.access_token}"})])
    done = sync().raise_for_exit_code()
    assert done.records[0]["actor"] == {"name": f"is {service.access_token}"}
    assert done.ids == [service.access_token]
    assert service.access_token not in json.dumps(done.state)


# Whole runs: `run` looks for the token in what each of them leaves


ECHOES: dict[str, dict[str, Any]] = {
    "errCode": {"code": 403, "err_code": f"Bearer {TOKEN}"},
    "msg": {"code": 400, "msg": f"no {TOKEN} {quote(TOKEN, safe='').lower()}"},
    "msg that is cut": {"code": 400, "msg": "x" * 290 + TOKEN},
    "Location": {"code": 302, "location": f"https://e.example/?t={quote(TOKEN, safe='')}"},
    "Retry-After": {"code": 429, "retry_after": TOKEN.replace("\\", "")},
    "long Retry-After": {"code": 503, "retry_after": "99999", "msg": TOKEN},
    "lower case": {"code": 403, "msg": f"no {TOKEN.lower()}"},
    "upper case": {"code": 403, "err_code": TOKEN.upper()},
}


@pytest.mark.parametrize("level", ["DEBUG", "INFO"])
@pytest.mark.parametrize("where", ECHOES)
def test_an_echo_in_an_error_is_masked(
    where: str, level: str, service: Service, sync: Sync
) -> None:
    """In each part of a response that a line shows, at any log level."""
    service.access_token = TOKEN
    service.add_faults([Fault(kind="status", **ECHOES[where])])
    done = sync(access_token=TOKEN, max_retries=0, environment={"LOGLEVEL": level})
    assert only_error(done)
    assert TOKEN.lower()[:12] not in done.log.lower()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-be"])
def test_an_echo_in_utf_16_is_masked(encoding: str, service: Service, sync: Sync) -> None:
    """Read as UTF-8, it has NUL bytes between its letters, which a line shows as escapes."""
    service.access_token = TOKEN
    body = f"<p>Bearer {TOKEN}</p>".encode(encoding)
    service.add_faults([Fault(kind="body", text=body)])
    done = sync(access_token=TOKEN, max_retries=0)
    assert "p\\x00a\\x00t" not in only_error(done)
    assert TOKEN[:12] not in re.sub(r"(\\x00)+", "", done.log)


@pytest.mark.parametrize("given", ['"TOKEN"', "'TOKEN'", "Bearer:TOKEN", "TOKEN.", "<TOKEN>;"])
def test_a_token_with_other_characters_around_it_is_masked(
    given: str, service: Service, sync: Sync
) -> None:
    """They are a mistake in the configuration; the service may echo the token without them."""
    service.add_faults([Fault(kind="status", code=401, msg="unknown: acme_pat_secret-name")])
    done = sync(access_token=given.replace("TOKEN", "acme_pat_secret-name"))
    assert f"unknown: {MASK}" in only_error(done)


@pytest.mark.parametrize(
    "settings_of",
    [
        lambda url: {"action_types": ["workspace_create", "acme_pat_secret-name"]},
        lambda url: {"base_url": f"{url}/acme_pat_secret-name"},
        lambda url: {"base_url": f"{url}/ACME_PAT_SECRET-NAME/x"},
        lambda url: {"base_url": f"{url}/a%2Facme%5Fpat%5Fsecret-name"},
    ],
)
def test_a_token_in_a_url_is_masked_in_the_debug_log(
    settings_of: Callable[[str], dict[str, Any]],
    service: Service,
    settings: dict[str, Any],
    sync: Sync,
) -> None:
    """Libraries log the URL of each request, which contains these settings."""
    done = sync(environment={"LOGLEVEL": "DEBUG"}, **settings_of(settings["base_url"]))
    assert "GET /" in done.log
    assert "secret-name" not in done.log.lower()
    service.violations.clear()  # the sandbox does not know these paths


def test_a_cursor_that_echoes_is_masked_in_the_debug_log(service: Service, sync: Sync) -> None:
    """Libraries log the URL of each request, with the cursor percent-encoded."""
    service.access_token = TOKEN
    page = json.dumps({"auditEvents": [], "nextCursor": TOKEN}).encode()
    service.add_faults([Fault(kind="body", text=page, when="1")])
    done = sync(access_token=TOKEN, concurrency=1, environment={"LOGLEVEL": "DEBUG"})
    assert f"cursor={MASK}" in done.log
    service.violations.clear()  # the cursor was none of the sandbox's


@pytest.mark.parametrize("formatter", ["ConsoleFormatter", "StructuredFormatter"])
def test_a_log_of_ones_own_is_masked(
    formatter: str, service: Service, sync: Sync, tmp_path: Path
) -> None:
    """With handlers and a file set up by SINGER_SDK_LOG_CONFIG."""
    page = json.dumps({"auditEvents": [], "nextCursor": service.access_token}).encode()
    service.add_faults([Fault(kind="body", text=page, when="1")])
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "f": {"()": f"singer_sdk.logging.{formatter}"},
            "console": {"()": "singer_sdk.logging.ConsoleFormatter"},
        },
        "handlers": {
            "file": {
                "class": "logging.FileHandler",
                "formatter": "f",
                "filename": str(tmp_path / "tap.log"),
            },
            "stderr": {"class": "logging.StreamHandler", "formatter": "console"},
        },
        "root": {"level": "DEBUG", "handlers": ["file", "stderr"]},
    }
    (tmp_path / "log.json").write_text(json.dumps(config))  # YAML holds JSON
    environment = {"SINGER_SDK_LOG_CONFIG": str(tmp_path / "log.json")}
    sync(concurrency=1, environment=environment)
    service.violations.clear()  # the cursor was none of the sandbox's
    written = (tmp_path / "tap.log").read_text()
    assert f"cursor={MASK}" in written
    Run(b"", written, 1).check_discreet([service.access_token])


def test_an_unexpected_error_shows_no_token(service: Service, settings: dict[str, Any]) -> None:
    """Neither its line nor its traceback, down to the cause."""
    breaking = (
        "from tap_audit_events import __main__\n"
        "from tap_audit_events.service import client\n"
        "def fail(self, *_):\n"
        "    raise ZeroDivisionError('Bearer ' + self._settings.access_token)\n"
        "client.Client._query = fail\n"
        "__main__.main()\n"
    )
    names = {f"TAP_AUDIT_EVENTS_{name.upper()}": value for name, value in settings.items()}
    done = subprocess.run(
        [sys.executable, "-c", breaking, "--config", "ENV"],
        env={**os.environ, **names},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"AE-DEFECT: {CATALOGUE['AE-DEFECT'].summary} (Zero" in done.stderr
    assert f"\nZeroDivisionError: Bearer {MASK}\n" in done.stderr
    Run(done.stdout.encode(), done.stderr, 1).check_discreet([service.access_token])


@pytest.mark.parametrize(
    "swapped",
    [
        {"acme_pat_secret-name": "access_token"},
        {"access_token": GOOD["organization_id"], "organization_id": "acme_pat_secret-name"},
        {"access_token": "organization_id", "acme_pat_secret-name": 1},
        {"access_token": None, "acces_token": "acme_pat_secret-name"},
        {"start_date": "acme_pat_secret-name"},
        {"user_agent": "acme_pat_secret-name\n"},
        {"access_token": "Bearer acme_pat_secret-name"},
        {"access_token": "acme_pat_secret-name\n", "acme_pat_secret-name": True},
        {"access_token": '"acme_pat_secret-name"', "start_date": "acme_pat_secret-name"},
        {"access_token": "'acme_pat_secret-name' "},
        {"access_token": None, "access_token_file": "acme_pat_secret-name"},
        {"access_token": None, "access_token_file": "/run/Acme_pat_secret-name"},
        {"access_token": None, "access_token_file": "'acme_pat_secret-name'"},
        {"access_token": "acme_pat_secret-name", "access_token_file": "acme_pat_secret-name"},
        {"access_token": "abcdefgh/secret-name", "access_token_file": "abcdefgh/secret-name"},
        {"action_types": ["acme_pat_secret-name"]},
        {"action_types": ["workspace_create", "acme_pat_secret-name", 5]},
        {"action_types": "workspace_create,acme_pat_secret-name"},
        {"base_url": "https://acme_pat_secret-name"},
        {"base_url": "https://acme_pat_secret-name.localhost:1/"},
        {"base_url": "https://Acme_PAT_Secret-name.localhost:1"},
        {"base_url": "https://127.0.0.1:1/acme_pat_secret-name"},
        {"base_url": "https://127.0.0.1:1/acme%5Fpat%5Fsecret-name/x"},
        {"base_url": "https://127.0.0.1:1/ACME_PAT_SECRET-NAME"},
        {"base_url": "acme_pat_secret-name"},
        {"user_agent": "token=acme_pat_secret-name;"},
        {"stream_maps": {"acme_pat_secret-name": {"id": "("}}},
        {"stream_maps": {"audit_events": {"acme_pat_secret-name": "("}}},
    ],
)
def test_a_token_in_a_wrong_place_of_the_settings_is_not_shown(swapped: dict[str, Any]) -> None:
    """As a name, as the value of another setting, in quotes, in a URL, or with extra words."""
    unreachable = {"base_url": "https://127.0.0.1:1", "max_retries": 0}
    done = run(GOOD | unreachable | swapped, environment={"LOGLEVEL": "DEBUG"})
    assert "secret-name" not in done.log.lower()
    assert "AE-" in done.log


@pytest.mark.parametrize("option", ["--config", "--state", "--catalog"])
def test_a_token_in_place_of_a_path_is_not_shown(option: str) -> None:
    """The error names the file without its path."""
    done = run(GOOD, option, "acme_pat_secret-name")
    assert only_error(done).startswith(f"AE-FILE: The {option[2:]} file '{MASK}' cannot be read")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("base_url", f"https://127.0.0.1:1/{GOOD['access_token']}"),
        (
            "base_url",
            f"https://{GOOD['access_token']}.localhost:1".upper().replace("HTTPS", "https"),
        ),
        ("action_types", ["workspace_create", f"x{GOOD['access_token']}"]),
        ("user_agent", f"tap {GOOD['access_token']}"),
    ],
)
def test_a_setting_that_would_send_the_token_is_refused(name: str, value: object) -> None:
    """The token is sent in the Authorization header only, so not in a URL or another header."""
    line = only_error(run(GOOD | {name: value}))
    assert line == f"AE-SETTINGS: {name} contains the access token: remove it there"


def test_a_name_that_only_looks_like_a_token_stays_in_state_and_schema(
    service: Service, sync: Sync
) -> None:
    """It may be an action type or a field; a mask would change what the next run reads."""
    service.add([an_event(action_type="user_pat_created")])
    done = sync(
        action_types=["user_pat_created"],
        stream_maps={"audit_events": {"compat_version": "'1'", "__else__": None, "id": "id"}},
    ).raise_for_exit_code()
    assert done.records == [{"compat_version": "1", "id": "event-1"}]
    schema = next(message for message in done.messages if message["type"] == "SCHEMA")
    assert "compat_version" in schema["schema"]["properties"]
    assert "user_pat_created" in json.dumps(done.state)


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


def test_objects_do_not_show_the_token(service: Service, settings: dict[str, Any]) -> None:
    """A debugger or a careless log line prints their repr."""
    authenticator = AccessTokenAuthenticator(
        token=service.access_token,
        base_url=settings["base_url"],
        token_file=None,
        logger=logging.getLogger("authenticator"),
    )
    tap = TapAuditEvents(config=dict(settings))
    shown = [authenticator, tap, tap.settings, read_settings(settings), *tap.streams.values()]
    assert not [each for each in shown if service.access_token in f"{each!r}{each}"]


def test_the_process_title_does_not_hold_the_token(
    service: Service,
    start: Start,  # noqa: F811
) -> None:
    """Anybody on the machine can list it."""
    service.add_faults([Fault(kind="hang", seconds=300)])
    process = start(forks=False)
    wait_for_log(process, "Reading ")
    title = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert b"tap_audit_events" in title
    assert service.access_token.encode() not in title
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
