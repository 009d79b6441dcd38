"""Pages that are asked for before the one before them was looked at."""

import gzip
import http.server
import json
import logging
import socketserver
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.exceptions import ServiceError
from tap_audit_events.events.instants import Instant, parse_instant
from tap_audit_events.events.page import Envelope, split_page
from tap_audit_events.events.window import AsksAhead, Window
from tap_audit_events.sandbox import Service, serve
from tap_audit_events.service.client import LARGEST_ERROR_BYTES, Client
from tap_audit_events.service.connections import AheadAdapter
from tap_audit_events.service.likely import likely_cursor, likely_newest
from tap_audit_events.service.rate_limiter import Gate
from tap_audit_events.singer.stream import pages_of
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import ORGANIZATION_ID, an_event
from tests.running import run, settings_for
from tests.service.test_requests import TEN_EVENTS

EVERYTHING = Window(None, Instant("2026-01-31T00:00:00"))
TEN_IDS = [event["id"] for event in TEN_EVENTS]


@dataclass
class Ask:
    """A client, and what holds its requests back."""

    client: Client
    gate: Gate

    def pages(self, asks_ahead: AsksAhead = lambda _: True) -> Generator[Envelope, None, None]:
        return self.client.envelopes(EVERYTHING, asks_ahead)


def asking(base_url: str, concurrency: int = 1, **more: Any) -> Ask:
    """A client of a service at this address, three events a page."""
    settings = read_settings(
        {
            "base_url": base_url,
            "organization_id": ORGANIZATION_ID,
            "access_token": "acme_pat_ahead",
            "page_size": 3,
            "max_retries": 0,
            **more,
        }
    )
    gate = Gate(concurrency)
    new_session = TapAuditEvents.new_session
    logger = logging.getLogger("ahead")
    return Ask(Client(settings, lambda: new_session(None), gate=gate, logger=logger), gate)  # type: ignore[arg-type]


@pytest.fixture
def service() -> Iterator[Service]:
    """Ten events; a request outside of the interface fails the test."""
    made = Service(organization_id=ORGANIZATION_ID, access_token="acme_pat_ahead")
    made.add(TEN_EVENTS)
    yield made
    assert made.violations == []


@pytest.fixture
def base_url(service: Service) -> Iterator[str]:
    """Where it is."""
    with serve(service) as server:
        yield server.base_url


def ids_of(envelopes: list[Envelope]) -> list[str]:
    return [json.loads(bytes(text))["id"] for envelope in envelopes for text in envelope.texts]


def test_the_next_page_is_on_its_way_before_one_is_looked_at(base_url: str) -> None:
    """One request at a time all the same, and each is sent once."""
    ask = asking(base_url)
    pages = ask.pages()
    first = next(pages)
    assert first.is_next_asked
    assert ask.gate.requests == 2
    rest = list(pages)
    assert [page.is_next_asked for page in rest] == [True, True, False]
    assert ids_of([first, *rest]) == TEN_IDS
    assert ask.gate.requests == 4


def test_nothing_is_sent_ahead_unasked(service: Service, base_url: str) -> None:
    """Where the next page may not be wanted, it is asked for when it is."""
    ask = asking(base_url)
    pages = ask.pages(lambda _: False)
    assert not next(pages).is_next_asked
    assert len(service.requests) == ask.gate.requests == 1
    assert len(ids_of(list(pages))) == 7


def test_a_page_is_not_kept_by_whoever_asked_for_it(base_url: str) -> None:
    """It is large, and may wait for long until the one behind it is wanted."""
    pages = asking(base_url).pages()
    page = next(pages)
    assert sys.getrefcount(page) == 2  # the name here, and the argument
    assert len(ids_of([page, *pages])) == len(TEN_IDS)


def test_a_page_is_not_kept_by_whoever_read_it(base_url: str) -> None:
    """Neither its bytes nor its columns."""
    pages = pages_of(asking(base_url).client, lambda _: True, EVERYTHING)
    page = next(pages)
    assert sys.getrefcount(page) == 2  # the name here, and the argument
    assert [*page.ids, *(event_id for each in pages for event_id in each.ids)] == TEN_IDS


def test_what_nobody_takes_is_forgotten(base_url: str) -> None:
    """The answer to a request sent ahead never becomes that of another."""
    ask = asking(base_url)
    pages = ask.pages()
    assert next(pages).is_next_asked
    pages.close()
    assert ids_of(list(ask.pages())) == TEN_IDS
    assert ask.gate.requests == 2 + 4
    assert ask.gate.turn_at_once() is not None, "a request counts as under way for ever"


def test_what_ends_beside_it_disturbs_no_request_ahead(base_url: str) -> None:
    """Iterators that nobody uses any more end in whichever thread frees them."""
    ask = asking(base_url, concurrency=2)
    pages = ask.pages()
    other = ask.client.envelopes(Window(None, EVERYTHING.end), lambda _: False)
    seen = [next(other), next(pages)]
    other.close()
    assert ids_of([seen[1], *pages]) == TEN_IDS
    assert ask.gate.requests == 1 + 4
    assert [ask.gate.turn_at_once() is None for _ in range(3)] == [False, False, True]


def test_another_request_of_the_same_thread_takes_no_answer_of_the_first(base_url: str) -> None:
    """Two windows read in turns by one thread each get their own pages."""
    ask = asking(base_url, concurrency=2)
    both = [ask.pages(), ask.pages()]
    read: list[list[Envelope]] = [[], []]
    for _ in range(4):
        for pages, seen in zip(both, read, strict=True):
            seen.append(next(pages))
    assert [ids_of(seen) for seen in read] == [TEN_IDS, TEN_IDS]


def test_what_would_have_to_wait_is_not_sent_ahead(
    base_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the gate lets no request through, the next is asked for in its turn."""
    ask = asking(base_url)
    monkeypatch.setattr(ask.gate, "turn_at_once", lambda: None)
    pages = list(ask.pages())
    assert not any(page.is_next_asked for page in pages)
    assert ids_of(pages) == TEN_IDS


def test_a_run_is_the_same_in_fewer_round_trips(service: Service, base_url: str) -> None:
    """Through the command line: the requests of a run that sends none ahead, in their order."""
    given = settings_for(service, base_url) | {"page_size": 3, "concurrency": 1}
    assert run(given).raise_for_exit_code().ids == TEN_IDS
    assert ["cursor" in request.params for request in service.requests] == [False, *[True] * 3]
    assert len({request.params.get("cursor") for request in service.requests}) == 4


# Services that do not keep what they seem to promise


@dataclass
class Fault:
    """An answer that is no page.

    Attributes:
        status: its status.
        body: what is sent of it.
        missing: so many bytes more are promised.
        headers: more of them.
    """

    status: int = 200
    body: bytes = b""
    missing: int = 0
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Script:
    """Answers in their order; each request's cursor is noted.

    Attributes:
        bodies: one an answer.
        closes: whether each connection is closed after its answer, without a word.
    """

    bodies: list[bytes | Fault]
    closes: bool = False
    cursors: list[str] = field(default_factory=list)
    hangs: threading.Event = field(default_factory=threading.Event)


HANGS = Fault(missing=1)
"""Its headers come, and nothing after them."""


@contextmanager
def scripted(script: Script) -> Iterator[str]:
    """A server that plays it."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            script.cursors.append(self.path.partition("cursor=")[2])
            answer = script.bodies.pop(0)
            answer = answer if isinstance(answer, Fault) else Fault(body=answer)
            if answer.status:
                self.send_response_only(answer.status)
                self.send_header("Content-Length", str(len(answer.body) + answer.missing))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)
            if answer == HANGS:
                script.hangs.wait(60)
            self.close_connection = script.closes or bool(answer.missing) or not answer.status

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    script.hangs.set()
    server.shutdown()
    thread.join()
    server.server_close()


def a_page(number: int, cursor: str | None) -> bytes:
    page: dict[str, Any] = {"auditEvents": [an_event(id=f"{number}")]}
    return json.dumps(page | ({"nextCursor": cursor} if cursor else {})).encode()


def test_connections_that_close_without_a_word_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the first request that is lost so, none is sent ahead."""
    monkeypatch.setattr("backoff.full_jitter", lambda _: 0.0)
    bodies: list[bytes | Fault] = [a_page(number, f"c{number + 1}") for number in range(30)]
    with scripted(Script([*bodies, a_page(30, None)], closes=True)) as base_url:
        pages = list(asking(base_url, max_retries=5).pages())
    assert ids_of(pages) == [f"{number}" for number in range(31)]
    assert sum(page.is_next_asked for page in pages) <= 1


def test_a_cursor_read_from_a_broken_page_is_not_followed() -> None:
    """The page is asked for again; what was asked for ahead is not taken for it."""
    broken = a_page(0, "never").replace(b'"id": "0"', b'"id": 0"')
    script = Script([broken, a_page(7, "wrong"), a_page(0, "c1"), a_page(1, None)])
    with scripted(script) as base_url:
        ask = asking(base_url, max_retries=1)
        assert ids_of(list(ask.pages())) == ["0", "1"]
    assert script.cursors == ["", "never", "", "c1"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(500, b"{}"), "AE-500"),
        (Fault(500, b"x" * 3 * LARGEST_ERROR_BYTES), "AE-500"),
        (Fault(body=b'{"auditEvents":', missing=9), "AE-CUT"),
        (Fault(status=0), "AE-CONNECTION"),
        (Fault(), "AE-NO-JSON"),
        (Fault(body=b"no gzip", headers={"Content-Encoding": "gzip"}), "AE-CUT"),
        (HANGS, "AE-TIMEOUT"),
    ],
)
def test_an_answer_to_what_was_sent_ahead_may_fail_like_any_other(
    fault: Fault, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is asked for again; nothing of it is taken for the next answer."""
    monkeypatch.setattr("backoff.full_jitter", lambda _: 0.0)
    pages = [a_page(number, f"c{number + 1}") for number in range(3)]
    with scripted(Script([pages[0], fault, *pages[1:], a_page(3, None)])) as base_url:
        ask = asking(base_url, max_retries=1, request_timeout_seconds=0.5)
        assert ids_of(list(ask.pages())) == ["0", "1", "2", "3"]
    (line,) = [record.message for record in caplog.records if record.name == "ahead"]
    assert f": {said}: " in line
    assert "None" not in line
    assert ask.gate.requests == 5


def test_an_answer_may_be_packed() -> None:
    """The one to a request sent ahead like any other."""
    packed = Fault(body=gzip.compress(a_page(1, "c2")), headers={"Content-Encoding": "gzip"})
    with scripted(Script([a_page(0, "c1"), packed, a_page(2, None)])) as base_url:
        assert ids_of(list(asking(base_url).pages())) == ["0", "1", "2"]


@pytest.mark.parametrize("status", [302, 403])
def test_an_answer_that_ends_the_run_may_be_one_to_what_was_sent_ahead(status: int) -> None:
    """What it says is read as from any other."""
    refused = Fault(
        status, b'{"errCode":"no","msg":"Not now","vars":null}', headers={"Location": "/"}
    )
    with (
        scripted(Script([a_page(0, "c1"), refused])) as base_url,
        pytest.raises(ServiceError, match=r"status 302 to '/'|Not now"),
    ):
        list(asking(base_url).pages())


def test_an_answer_that_is_too_large_leaves_nothing_behind() -> None:
    """Its rest is not taken for the next answer."""
    large = a_page(1, None)[:-1] + b" " * 2_000_000 + b"}"
    with scripted(Script([a_page(0, "c1"), large, a_page(7, None)])) as base_url:
        ask = asking(base_url, max_response_megabytes=1)
        pages = ask.pages()
        assert ids_of([next(pages)]) == ["0"]
        with pytest.raises(ServiceError, match="AE-TOO-LARGE"):
            next(pages)
        assert ids_of(list(ask.pages())) == ["7"]


def test_a_window_that_ends_with_an_error_leaves_nothing_under_way() -> None:
    """What is no page ends it, though the next was asked for."""
    no_page = b'{"auditEvents": {}, "nextCursor": "c1"}'
    with scripted(Script([no_page, a_page(1, None)])) as base_url:
        ask = asking(base_url)
        with pytest.raises(ServiceError, match="AE-ENVELOPE"):
            next(ask.pages())
        assert ask.gate.turn_at_once() is not None


# The cursor at a body's end

texts = st.text(st.sampled_from('nextCursor":{}[],\\ \n\té') | st.characters(codec="utf-8"))
values = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(texts | st.just("nextCursor"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    fields=st.dictionaries(texts.filter(lambda name: name != "nextCursor"), values, max_size=3),
    cursor=st.none() | st.text(min_size=1),
    is_last=st.booleans(),
    spaces=st.sampled_from([None, 1]),
    ensure_ascii=st.booleans(),
)
def test_a_likely_cursor_is_the_cursor(
    fields: dict[str, Any],
    cursor: str | None,
    is_last: bool,
    spaces: int | None,
    ensure_ascii: bool,
) -> None:
    """Whatever else a page holds, in whatever order: it is never another text."""
    own = {} if cursor is None else {"nextCursor": cursor}
    page = {"auditEvents": []} | (fields | own if is_last else own | fields)
    page["auditEvents"] = []
    body = json.dumps(page, indent=spaces, ensure_ascii=ensure_ascii)
    data = body.encode("utf-8", "surrogatepass")
    try:
        found = split_page(data).next_cursor
    except ServiceError:
        return
    assert likely_cursor(data) in (None, found)


@pytest.mark.parametrize("space", [b"", b" ", b"\n  "])
def test_a_usual_cursor_is_found(space: bytes) -> None:
    """Base64, spaces and signs, compact and laid out."""
    cursor = b"R+DrHv8xSI7L+/ &%2B=0F+nlldCjCec=="
    body = b'{"auditEvents":[],%b"nextCursor":%b"%b"%b}%b' % (space, space, cursor, space, space)
    assert likely_cursor(body) == cursor.decode()


@given(
    times=st.lists(st.datetimes(), max_size=3),
    more=st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=2),
    is_last=st.booleans(),
    spaces=st.sampled_from([None, 1]),
)
def test_the_last_events_time_is_the_likely_newest(
    times: list[datetime], more: dict[str, str], is_last: bool, spaces: int | None
) -> None:
    """Wherever it stands in the event, and however the page is laid out."""
    own = [{"occurredAt": f"{time.isoformat()}Z"} for time in times]
    events = [more | each if is_last else each | more for each in own]
    body = json.dumps({"auditEvents": events, "nextCursor": "abc"}, indent=spaces).encode()
    newest = parse_instant(own[-1]["occurredAt"]) if own else None
    assert likely_newest(body) == newest


@pytest.mark.parametrize(
    ("end", "newest"),
    [
        ('"occurredAt":"2026-01-01T02:00:00.50+02:00","x":{}', "2026-01-01T00:00:00.5"),
        ('"occurredAt":"yesterday"', None),
        ('"occurredAt":null', None),
        ('"occurredAt":"2026-01-01T00:00:00Z","x":"occurredAt"', None),
        ('"occurredAt":"2026-01-01T00:00:00Z","x":"%s"' % ("y" * 70_000), None),
        ('"occurredAt":"2026-01-01T00:00:00Z","x":{"occurredAt":"2025-01-01T00:00:00Z"}',
         "2025-01-01T00:00:00"),
    ],
)  # fmt: skip
def test_a_likely_newest_is_only_what_stands_last(end: str, newest: str | None) -> None:
    """It is a guess, and none where that is no time."""
    assert likely_newest(b'{"auditEvents":[{%b}],"nextCursor":"a"}' % end.encode()) == newest


def test_socks_proxies_keep_their_own_connections() -> None:
    """Only the usual kinds of connections are replaced."""
    adapter = AheadAdapter()
    kinds = adapter.proxy_manager_for("http://127.0.0.1:1").pool_classes_by_scheme
    assert {kind.__module__ for kind in kinds.values()} == {"tap_audit_events.service.connections"}
