"""Failures around a run, and states and catalogs of older versions and other tools."""

import gzip
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from logging import getLogger
from pathlib import Path
from typing import Any

import pytest
import requests

from tap_audit_events.errors.exceptions import RefusedError
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.page import Page
from tap_audit_events.extraction import pagination
from tap_audit_events.extraction.pagination import Paginator
from tap_audit_events.extraction.watermark_json import from_json
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.running import Run, run
from tests.singer.test_incremental import events, state_of

TEN_EVENTS = events(*(f"08:00:0{n}" for n in range(10)))
TEN_IDS = [event["id"] for event in TEN_EVENTS]

# States of other settings, other tools, other times


@pytest.mark.parametrize("before", [0, 60])
def test_a_longer_lookback_repeats_nothing(before: int, service: Service, sync: Sync) -> None:
    """The first run with it starts where the ids of its state begin; late events still arrive."""
    service.add(events("08:00:00", "08:01:00", "08:02:00", "08:02:59", "08:03:00"))
    state = sync(lookback_seconds=before).state
    quiet = sync(state=state, lookback_seconds=300).raise_for_exit_code()
    assert quiet.ids == []
    service.add(events("08:03:01", "08:10:00"))
    more = sync(state=quiet.state, lookback_seconds=300).raise_for_exit_code()
    assert more.ids == ["08:03:01", "08:10:00"]
    service.add(events("08:06:00"))
    late = sync(state=more.state, lookback_seconds=300).raise_for_exit_code()
    assert late.ids == ["08:06:00"]


def test_a_bookmark_in_another_form_keeps_its_ids(service: Service, sync: Sync) -> None:
    """The same instant written differently is the same bookmark."""
    service.add(TEN_EVENTS)
    state = sync().state
    entry = state["bookmarks"]["audit_events"]
    entry["replication_key_value"] = "2024-05-06T10:00:09.00+02:00"
    assert sync(state=state).raise_for_exit_code().ids == []


@pytest.mark.parametrize(
    ("bookmark", "ids"),
    [
        ({"occurredAt": "2024-05-06T08:00:09Z"}, ["08:00:09"]),
        ({"replication_key": "occurredAt", "replication_key_value": None}, TEN_IDS),
        ({"partitions": []}, TEN_IDS),
    ],
)
def test_a_state_of_another_tap_is_used_or_warned_about(
    bookmark: dict[str, Any], ids: list[str], service: Service, sync: Sync
) -> None:
    """If a run reads everything again, it says so."""
    service.add(TEN_EVENTS)
    done = sync(state={"bookmarks": {"audit_events": bookmark}}, lookback_seconds=0)
    assert done.raise_for_exit_code().ids == ids
    assert bool(done.warnings) == (ids == TEN_IDS)


def test_a_state_of_another_stream_is_warned_about(service: Service, sync: Sync) -> None:
    """A misspelt stream name would make the run read everything again."""
    service.add(TEN_EVENTS)
    done = sync(state={"bookmarks": {"audit-events": {"replication_key_value": "x"}}})
    assert done.warnings == ["The state has no bookmark for audit_events: all events are read"]


def test_ids_that_are_not_used_are_warned_about(service: Service, sync: Sync) -> None:
    """For example those of a newer version, or of a bookmark that was set back by hand."""
    service.add(TEN_EVENTS)
    state = sync().state
    state["bookmarks"]["audit_events"]["watermark"][0]["version"] = 99
    assert "may be emitted again" in sync(state=state).warnings[0]


def test_ids_of_a_full_state_are_told_from_new_ones(service: Service, sync: Sync) -> None:
    """Ids that have left the lookback make room for new ones."""
    for minute in (0, 6):
        service.add(
            an_event(id=f"{minute}-{n}", at=f"2024-05-06T08:{minute:02}:{n % 60:02}Z", context={})
            for n in range(6000)
        )
    first = sync(end_date="2024-05-06T08:05:00Z").raise_for_exit_code()
    second = sync(state=first.state).raise_for_exit_code()
    assert len(second.ids) == 6000
    assert second.warnings == []
    entry = second.state["bookmarks"]["audit_events"]["watermark"][0]
    groups = from_json(entry, lookback_seconds=300).groups
    assert sum(group.count for group in groups) == 6000


# A service that breaks its promises in two ways at once


def pages_out_of_order(service: Service) -> None:
    """Pages of two events, the last one before the middle ones, then a refused cursor."""
    first = {"auditEvents": TEN_EVENTS[:2], "nextCursor": "a"}
    second = {"auditEvents": TEN_EVENTS[8:], "nextCursor": "b"}
    third = {"auditEvents": TEN_EVENTS[2:4], "nextCursor": "c"}
    for number, page in enumerate((first, second, third), 1):
        service.add_faults([Fault(kind="body", text=json.dumps(page).encode(), when=str(number))])
    service.add_faults([Fault(kind="status", code=400, when="4")])


def test_a_refused_cursor_after_disorder_is_an_error(service: Service, sync: Sync) -> None:
    """A restart at the newest instant would skip the events that are still to come."""
    service.add(TEN_EVENTS)
    pages_out_of_order(service)
    done = sync(page_size=2, concurrency=1)
    assert only_error(done).startswith("AE-CURSOR-REFUSED: ")
    assert "in the oldest event to " in only_error(done)
    again = sync(state=done.state).raise_for_exit_code()
    assert sorted(done.ids + again.ids) == TEN_IDS
    service.violations.clear()  # the cursors of the pages above were none of the sandbox's


def test_a_first_run_out_of_order_that_breaks_off_repeats_nothing(
    service: Service, sync: Sync
) -> None:
    """There is a bookmark from the first event on, with the ids that were delivered."""
    service.add(TEN_EVENTS)
    page = {"auditEvents": [TEN_EVENTS[n] for n in (4, 1)] + [{"id": "bad"}]}
    service.add_faults([Fault(kind="body", text=json.dumps(page).encode(), when="1")])
    first = sync()
    assert first.exit_code == 1
    second = sync(state=first.state).raise_for_exit_code()
    assert sorted(first.ids + second.ids) == TEN_IDS
    assert "startTime" not in service.requests[-1].params


def test_empty_pages_without_end_are_an_error(
    service: Service, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a new cursor, so only their number shows it."""
    monkeypatch.setattr(pagination, "MOST_EMPTY_PAGES", 5)
    service.add(TEN_EVENTS)
    service.add_faults([Fault(kind="empty", when="3-")])
    with pytest.raises(Exception, match="AE-EMPTY-PAGES: "):
        TapAuditEvents(config=settings | {"page_size": 1, "concurrency": 1}).sync_all()
    assert len(service.requests) == 2 + 6


def advance_in_a_cycle(paginator: Paginator, length: int) -> None:
    for page in range(10 * length + 100):
        paginator.advance(Page([str(page)], [Instant("")], [b""], f"cursor {page % length}"))


def test_cycles_of_any_length_are_found_with_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cycle longer than the number of remembered cursors is found too."""
    monkeypatch.setattr(pagination, "RECENT_CURSORS", 10)
    for length in (1, 2, 9, 11, 50, 333):
        paginator = Paginator()
        with pytest.raises(Exception, match="AE-CURSOR-REPEATED"):
            advance_in_a_cycle(paginator, length)
        assert len(paginator._cursors) <= 10


def test_bounds_that_were_rounded_raise_no_warning(service: Service, sync: Sync) -> None:
    """The tap itself requested the whole second."""
    service.add(events("08:00:00.2", "08:00:00.7"))
    done = sync(start_date="2024-05-06T08:00:00.1Z", end_date="2024-05-06T08:00:00.5Z")
    assert done.raise_for_exit_code().ids == ["08:00:00.2"]
    assert done.warnings == []


# The token


def echoes(token: str) -> dict[str, bytes]:
    escaped = json.dumps(token)
    return {
        "not JSON": f"<pre>Authorization: Bearer {token}</pre>".encode(),
        "event": f'{{"auditEvents": [{{"id": "x", "token": {escaped}}}]}}'.encode(),
        "cursor": f'{{"auditEvents": [], "nextCursor": {escaped}}}'.encode(),
        "envelope": f"{{{escaped}: 1}}".encode(),
    }


@pytest.mark.parametrize("where", list(echoes("")))
@pytest.mark.parametrize("token", ["acme_pat_" + "x" * 60, 'acme_pat_"quoted\\'])
def test_an_echoed_token_is_never_shown(
    where: str, token: str, service: Service, sync: Sync
) -> None:
    """Also if the status is 200, and if the end of a shortened text would cut the token."""
    service.access_token = token
    service.add_faults([Fault(kind="body", text=echoes(token)[where])])
    done = sync(access_token=token, max_retries=0)
    assert done.exit_code == 1
    assert token not in done.log
    assert json.dumps(token)[1:-1] not in done.log
    assert token[:30] not in done.log
    service.violations.clear()  # the cursor was none of the sandbox's


def test_the_token_goes_to_the_configured_service_only() -> None:
    """A request to another scheme, host or port is not sent."""
    authenticator = AccessTokenAuthenticator(
        token="x_pat_y",
        base_url="https://a.example/prefix",
        token_file=None,
        logger=getLogger("test"),
    )
    for url in ("https://a.example/v1", "https://a.example:443/v1"):
        request = requests.Request("GET", url, auth=authenticator).prepare()
        assert request.headers["Authorization"] == "Bearer x_pat_y"
    for url in ("http://a.example/", "https://b.example/", "https://a.example:444/"):
        with pytest.raises(RefusedError):
            requests.Request("GET", url, auth=authenticator).prepare()


# The machine


def run_in_shell(settings: dict[str, Any], folder: Path, command: str, **more: str) -> Run:
    """Run `command`; TAP in it stands for the tap with its settings."""
    (folder / "config.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [
            "bash",
            "-c",
            command.replace("TAP", '"$PYTHON" -m tap_audit_events --config config.json'),
        ],
        env={**os.environ, "PYTHON": sys.executable, **more},
        cwd=folder,
        capture_output=True,
        check=False,
    )
    ended = Run(done.stdout, done.stderr.decode(), done.returncode)
    ended.check_discreet([settings["access_token"]])
    return ended


@pytest.mark.parametrize(
    ("redirection", "reason"), [(">/dev/full", "No space left"), (">&-", "it is closed")]
)
def test_a_stdout_that_cannot_be_written_is_one_line(
    redirection: str, reason: str, service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Exit code 1 and the system's reason; no traceback."""
    service.add(TEN_EVENTS)
    line = only_error(run_in_shell(settings, tmp_path, f"TAP {redirection}"))
    assert line.startswith("AE-OUTPUT: The tap cannot write to stdout: ")
    assert reason in line


def test_a_state_from_a_closed_stdin_is_one_line(settings: dict[str, Any], tmp_path: Path) -> None:
    """`--state -` reads stdin, which may be closed."""
    assert "stdin is closed" in only_error(run_in_shell(settings, tmp_path, "TAP --state - <&-"))


def test_a_state_is_read_from_stdin(
    service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """With `--state -`, as in pipelines, and with a byte order mark."""
    service.add(TEN_EVENTS)
    (tmp_path / "s.json").write_text("\ufeff" + json.dumps(state_of("2024-05-06T08:00:09Z")))
    done = run_in_shell(settings | {"lookback_seconds": 0}, tmp_path, "TAP --state - <s.json")
    assert done.raise_for_exit_code().ids == ["08:00:09"]


@pytest.mark.parametrize("bundle", ["/nowhere/at/all.pem", __file__])
def test_an_unusable_ca_bundle_is_named(
    bundle: str, settings: dict[str, Any], untrusted_address: str
) -> None:
    """The advice of AE-CERTIFICATE may lead to this error, which is not retried."""
    https = {"base_url": untrusted_address, "max_retries": 3}
    done = run(settings | https, environment={"REQUESTS_CA_BUNDLE": bundle})
    assert only_error(done).startswith("AE-CERTIFICATE: ")


@pytest.mark.parametrize("proxy", ["http://", "nonsense://proxy", "http://[bad"])
def test_an_unusable_proxy_is_named(proxy: str, settings: dict[str, Any]) -> None:
    """Nothing can be sent to it, so it is not retried."""
    https = {"base_url": "https://localhost:9", "max_retries": 3}
    done = run(settings | https, environment={"HTTPS_PROXY": proxy, "NO_PROXY": "", "no_proxy": ""})
    assert only_error(done).startswith("AE-ADDRESS: ")


@pytest.mark.parametrize("name", ["LOGLEVEL", "TAP_AUDIT_EVENTS_LOGLEVEL"])
def test_an_unknown_log_level_is_one_line(name: str) -> None:
    """It is reported although logging is not set up yet."""
    done = run(None, "--version", environment={name: "LOUD"})
    assert done.exit_code == 1
    (line,) = done.errors
    expected = "is not a log level: set it to DEBUG, INFO, WARNING or ERROR"
    assert line == f"AE-SETTINGS: {name} {expected}"


def test_names_in_the_environment_that_are_no_settings_are_warned_about(sync: Sync) -> None:
    """A misspelt variable gets the same warning as a misspelt setting."""
    given = {"TAP_AUDIT_EVENTS_PAGESIZE": "5", "TAP_AUDIT_EVENTS__ID": "m"}
    done = sync("--config", "ENV", environment=given).raise_for_exit_code()
    assert done.warnings == ["'pagesize' is not a setting and is ignored: did you mean page_size?"]


def test_a_path_cannot_forge_a_log_line(settings: dict[str, Any]) -> None:
    """A line break in a file's name is escaped."""
    assert "'/x\\nERROR | y'" in only_error(run(settings, "--state", "/x\nERROR | y"))


def test_times_in_the_log_are_short(service: Service, sync: Sync) -> None:
    """A long fraction is delivered whole, but cut in log lines."""
    time = f"2024-05-06T08:00:00.{'1' * 79}Z"
    service.add([an_event(at=time)])
    done = sync().raise_for_exit_code()
    assert done.records[0]["occurredAt"] == time
    assert "1" * 30 not in done.log


# Catalogs and stream maps as others write them


def a_catalog(**metadata: Any) -> dict[str, Any]:
    root = {"breadcrumb": [], "metadata": {"selected": True, **metadata}}
    schema = {"properties": {"id": {"type": "string"}, "occurredAt": {"type": "string"}}}
    stream = {"tap_stream_id": "audit_events", "stream": "other", "schema": schema}
    return {"streams": [stream | {"metadata": [root], "key_properties": ["id"]}]}


def test_a_method_in_the_metadata_counts(service: Service, sync: Sync) -> None:
    """Some tools write `replication-method` only there."""
    service.add(TEN_EVENTS)
    catalog = a_catalog(**{"replication-method": "FULL_TABLE"})
    done = sync(catalog=catalog, state=state_of("2024-05-06T08:00:09Z")).raise_for_exit_code()
    assert done.ids == TEN_IDS
    assert "bookmark none, as the whole table was read" in done.log
    wrong = sync(catalog=a_catalog(**{"replication-key": "id"}))
    assert "replication_key of audit_events must be occurredAt" in only_error(wrong)


def test_a_catalog_that_selects_nothing_is_warned_about(sync: Sync) -> None:
    """A pipeline that succeeds without ever bringing events would be noticed too late."""
    done = sync(catalog=a_catalog(selected=False)).raise_for_exit_code()
    assert done.warnings == ["The catalog does not select audit_events: nothing is read"]


@pytest.mark.parametrize("name", ["x", "__filter__"])
@pytest.mark.parametrize("expression", ["nope", "1/0", "actor['nope']"])
def test_a_stream_map_that_fails_is_one_line(
    name: str, expression: str, service: Service, sync: Sync
) -> None:
    """Whatever the error of the expression; STATE is written before the run ends."""
    service.add(TEN_EVENTS)
    done = sync(stream_maps={"audit_events": {name: expression}})
    assert only_error(done).startswith("AE-STREAM-MAPS: stream_maps ")
    assert done.messages[-1]["type"] == "STATE"


# Responses


@pytest.fixture
def answering() -> Iterator[Any]:
    """A server that responds to each request as the test says."""

    class Handler(http.server.BaseHTTPRequestHandler):
        answers: list[tuple[int, dict[str, str], bytes]] = []  # noqa: RUF012 - one a test

        def do_GET(self) -> None:
            status, headers, body = self.answers.pop(0)
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    Handler.base_url = f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
    yield Handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_compressed_responses_are_decompressed(answering: Any, settings: dict[str, Any]) -> None:
    """The tap accepts gzip."""
    body = gzip.compress(json.dumps({"auditEvents": TEN_EVENTS}).encode())
    answering.answers = [(200, {"Content-Encoding": "gzip"}, body)]
    assert run(settings | {"base_url": answering.base_url}).raise_for_exit_code().ids == TEN_IDS


def test_a_response_that_is_too_large_is_an_error(answering: Any, settings: dict[str, Any]) -> None:
    """The bound counts bytes after decompression."""
    bomb = gzip.compress(b" " * (3 * 1_000_000 + 1), compresslevel=1)
    answering.answers = [(200, {"Content-Encoding": "gzip"}, bomb)]
    done = run(settings | {"base_url": answering.base_url, "max_response_megabytes": 3})
    assert only_error(done).startswith("AE-TOO-LARGE: ")
    assert "more than 3,000,000 bytes" in done.log


@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "gzip"}])
def test_a_response_as_large_as_allowed_is_read(
    headers: dict[str, str], answering: Any, settings: dict[str, Any]
) -> None:
    """The bound is `max_response_megabytes`, compressed or not."""
    page = json.dumps({"auditEvents": TEN_EVENTS}).encode().ljust(1_000_000)
    packed = gzip.compress(page) if headers else page
    answering.answers = [(200, headers, packed)]
    given = settings | {"base_url": answering.base_url, "max_response_megabytes": 1}
    assert run(given).raise_for_exit_code().ids == TEN_IDS


def test_a_bomb_fills_no_memory(answering: Any, settings: dict[str, Any]) -> None:
    """A compressed page or error that grows without end is not kept in memory."""
    bomb = 100 * gzip.compress(10_000_000 * b" ", compresslevel=1)
    for status, code in ((200, "AE-TOO-LARGE"), (403, "AE-403")):
        answering.answers = [(status, {"Content-Encoding": "gzip"}, bomb)]
        given = settings | {"base_url": answering.base_url, "max_response_megabytes": 20}
        done = run(given, most_kilobytes=800_000)
        assert only_error(done).startswith(f"{code}: ")


def test_of_a_large_error_only_the_start_is_read(answering: Any, settings: dict[str, Any]) -> None:
    """The error shows it, and the connection is closed before the rest."""
    answering.answers = [(403, {}, b"Nope. " + b"x" * 5_000_000)]
    line = only_error(run(settings | {"base_url": answering.base_url}))
    assert line.startswith("AE-403: ")
    assert "Nope. xxx" in line
    assert len(line) < 1000


def test_retry_after_counts_from_the_services_own_clock(
    answering: Any, settings: dict[str, Any]
) -> None:
    """If the service's clock is an hour ahead, the run does not wait for an hour."""
    ahead = datetime.now(UTC) + timedelta(hours=1)
    dates = {
        "Date": format_datetime(ahead, usegmt=True),
        "Retry-After": format_datetime(ahead + timedelta(seconds=1), usegmt=True),
    }
    answering.answers = [(429, dates, b"{}"), (200, {}, b'{"auditEvents": []}')]
    done = run(settings | {"base_url": answering.base_url}).raise_for_exit_code()
    assert "Retry 1 of 8 in 1." in done.warnings[0]


def test_an_error_page_in_any_charset_is_shown(answering: Any, settings: dict[str, Any]) -> None:
    """A charset that Python does not know is not an error."""
    answering.answers = [(403, {"Content-Type": "text/html; charset=idna"}, b"<h1>No\xff</h1>")]
    line = only_error(run(settings | {"base_url": answering.base_url}))
    assert "<h1>No" in line
