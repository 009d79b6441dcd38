"""The faults, each on the requests it names."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest
import requests

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.sandbox.client import Client
from tests.sandbox.conftest import Sandbox

ABCD = [an_event(id=name) for name in "abcd"]


def statuses(client: Client, count: int) -> list[int]:
    return [client.get().status_code for _ in range(count)]


@pytest.mark.parametrize(
    ("when", "struck"),
    [
        ("3", {3}),
        ("2-4", {2, 3, 4}),
        ("5-", {5, 6, 7}),
        ("1,6", {1, 6}),
        ("1,5-6", {1, 5, 6}),
        ("*/3", {3, 6}),
        ("*", {1, 2, 3, 4, 5, 6, 7}),
    ],
)
def test_a_fault_strikes_the_requests_it_names(
    sandbox: Sandbox, when: str, struck: set[int]
) -> None:
    """Requests are numbered from 1, refused ones too."""
    client = sandbox(faults=[f"status:code=500@{when}"])
    answered = statuses(client, 7)
    assert {number for number, status in enumerate(answered, 1) if status == 500} == struck


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("reset@1", Fault(kind="reset", when="1")),
        ("hang:seconds=2.5@*", Fault(kind="hang", seconds=2.5)),
        ("cut:bytes=0@2", Fault(kind="cut", sent_bytes=0, when="2")),
        ("short:events=3@2", Fault(kind="short", events=3, when="2")),
        ("same-cursor:back=2@2", Fault(kind="same-cursor", back=2, when="2")),
        (
            "status:code=429,retry-after=soon,err-code=a%2Cb,msg=x=y@z@4",
            Fault(
                kind="status", code=429, retry_after="soon", err_code="a,b", msg="x=y@z", when="4"
            ),
        ),
        (
            "status:retry-after-date=+5,location=https://example.com/a:b@4",
            Fault(
                kind="status", retry_after_date=5.0, location="https://example.com/a:b", when="4"
            ),
        ),
        (
            "body:text=%7B%C3%A9,content-type=text/html@1",
            Fault(kind="body", text="{é".encode(), content_type="text/html", when="1"),
        ),
    ],
)
def test_a_fault_can_be_written_as_text(spec: str, fault: Fault) -> None:
    """The text form means the same as the value."""
    assert Fault.parse(spec) == fault


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("reset", "does not say when"),
        ("reset@", "names no requests"),
        ("reset@0", "names no requests"),
        ("reset@5-3", "names no requests"),
        ("reset@*/0", "names no requests"),
        ("reset@1,", "names no requests"),
        ("reset@-3", "names no requests"),
        ("reset@three", "names no requests"),
        ("explode@1", "'explode' is not a kind of fault; there are status, body"),
        ("reset:code=1@1", "'code' is not an option of reset; it has none"),
        ("status:seconds=1@1", "'seconds' is not an option of status; there are code, retry-after"),
        ("status:@1", "'' is not an option of status"),
        ("status:code=many@1", "code is not a number: 'many'"),
        ("status:code=99@1", "99 is not from 200 to 599"),
        ("hang:seconds=-1@1", "seconds is negative"),
        ("hang:seconds=nan@1", "seconds is negative or not a number"),
    ],
)
def test_a_bad_text_is_refused_with_what_is_wrong(spec: str, says: str) -> None:
    """The message quotes the fault and says what there is instead."""
    with pytest.raises(ValueError, match="fault") as refused:
        Fault.parse(spec)
    assert repr(spec) in str(refused.value)
    assert says in str(refused.value)


def test_faults_may_meet_in_one_request(sandbox: Sandbox) -> None:
    """A status that is also cut arrives as a broken body."""
    client = sandbox(faults=["status:code=500@1", "cut:bytes=3@1"])
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        client.get()


def test_a_fault_can_concern_only_some_requests(sandbox: Sandbox) -> None:
    """With `only`, `when` numbers just the requests for which it is true."""
    fault = Fault(kind="status", when="2", only=lambda seen: seen.params.get("order") == "asc")
    client = sandbox(faults=[fault])
    asked = ["asc", "desc", "desc", "asc", "asc"]
    answered = [client.get(order=order).status_code for order in asked]
    assert answered == [200, 200, 200, 503, 200]


def test_a_fault_added_later_numbers_requests_from_the_first(sandbox: Sandbox) -> None:
    """Numbers do not depend on when a fault was added."""
    client = sandbox()
    client.get()
    client.service.add_faults(["status@2"])
    assert client.get().status_code == 503


def test_a_status_has_the_error_body_of_the_interface(sandbox: Sandbox) -> None:
    """interface.md 7: errCode, msg and vars."""
    client = sandbox(faults=["status:code=429,retry-after=3,err-code=slow,msg=Slow%20down@1"])
    answer = client.get()
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "3"
    assert answer.json() == {"errCode": "slow", "msg": "Slow down", "vars": None}


def test_a_status_without_retry_after_has_none(sandbox: Sandbox) -> None:
    """The header is there only where it is asked for."""
    assert "Retry-After" not in sandbox(faults=["status@1"]).get().headers


def test_retry_after_can_be_a_date(sandbox: Sandbox) -> None:
    """RFC 9110, 10.2.3: the other form of `Retry-After`."""
    before = datetime.now(UTC).replace(microsecond=0)
    answer = sandbox(faults=["status:retry-after-date=60@1"]).get()
    date = parsedate_to_datetime(answer.headers["Retry-After"])
    assert before + timedelta(seconds=60) <= date <= datetime.now(UTC) + timedelta(seconds=60)


def test_a_redirect_has_a_location(sandbox: Sandbox) -> None:
    """Status 302 with the header that makes it one."""
    answer = sandbox(faults=["status:code=302,location=https://example.com/sign-in@1"]).get()
    assert answer.status_code == 302
    assert answer.headers["Location"] == "https://example.com/sign-in"


@pytest.mark.parametrize("code", [204, 304])
def test_a_status_without_content_has_no_body(sandbox: Sandbox, code: int) -> None:
    """RFC 9110, 6.4.1: 204 and 304; the connection lives on."""
    client = sandbox(faults=[f"status:code={code}@1"])
    assert client.get().content == b""
    assert client.get().status_code == 200


def test_a_body_is_served_as_it_is(sandbox: Sandbox) -> None:
    """Status 200 with other bytes and another content type."""
    page = b"<html>\xff</html>"
    answer = sandbox(faults=[Fault(kind="body", text=page, content_type="text/html")]).get()
    assert (answer.status_code, answer.content) == (200, page)
    assert answer.headers["Content-Type"] == "text/html"


def test_a_reset_breaks_the_connection_without_an_answer(sandbox: Sandbox) -> None:
    """The client sees a reset, not an orderly end, and may connect again."""
    client = sandbox(*ABCD, faults=["reset@1"])
    with pytest.raises(requests.exceptions.ConnectionError, match="Connection reset by peer"):
        client.get()
    assert client.get().status_code == 200
    assert [seen.status for seen in client.service.requests] == [0, 200]


def test_a_cut_body_is_shorter_than_its_length(sandbox: Sandbox) -> None:
    """Content-Length says all, the connection ends after the bytes that were asked for."""
    client = sandbox(*ABCD, faults=["cut:bytes=10@1", "cut@2"])
    for _ in range(2):
        with pytest.raises(requests.exceptions.ChunkedEncodingError, match="IncompleteRead"):
            client.get()
    with client.session.get(client.url, stream=True) as whole:
        assert int(whole.headers["Content-Length"]) == len(whole.content)


def test_a_hang_keeps_the_client_waiting(sandbox: Sandbox) -> None:
    """No byte comes before the client gives up; the next request is served."""
    client = sandbox(*ABCD, faults=["hang:seconds=600@1"])
    with pytest.raises(requests.exceptions.ReadTimeout):
        client.session.get(client.url, timeout=(60, 0.05))
    assert client.get().status_code == 200


def test_a_hang_and_the_latency_are_waited_before_the_answer() -> None:
    """Both times add up."""
    service = Service(faults=["hang:seconds=2@2"], page_latency_seconds=0.5)
    waits = [service.respond("GET", "/", b"", {}).wait_seconds for _ in range(2)]
    assert waits == [0.5, 2.5]


def test_an_empty_page_continues_at_the_same_place(sandbox: Sandbox) -> None:
    """Its cursor is a new one, and nothing is lost, at the beginning, amid and at the end."""
    client = sandbox(*ABCD, faults=["empty@1,3,5"])
    pages = client.pages(order="asc", pageSize=2)
    assert pages == [[], ["a", "b"], [], ["c", "d"]]
    client = sandbox(*ABCD, faults=["empty@2"])
    assert client.pages(order="asc", pageSize=3) == [["a", "b", "c"], [], ["d"]]
    cursors = [seen.params["cursor"] for seen in client.service.requests[1:]]
    assert len(set(cursors)) == 2


def test_an_empty_page_has_a_cursor_even_where_nothing_remains(sandbox: Sandbox) -> None:
    """The page it leads to is the last."""
    assert sandbox(faults=["empty@1"]).pages() == [[], []]


def test_a_short_page_is_followed_by_the_rest(sandbox: Sandbox) -> None:
    """Fewer events than asked for do not mean the end."""
    client = sandbox(*ABCD, faults=["short:events=1@1", "short@2"])
    assert client.pages(order="asc", pageSize=3) == [["a"], ["b"], ["c", "d"]]


def test_a_short_page_never_holds_more_than_was_asked_for(sandbox: Sandbox) -> None:
    """The pageSize asked for stays the maximum."""
    assert sandbox(*ABCD, faults=["short:events=9@1"]).page(pageSize=2)[0] == ["d", "c"]


def test_an_expired_cursor_stays_so(sandbox: Sandbox) -> None:
    """It is refused with 400 now and later; another cursor of the same place works."""
    client = sandbox(*ABCD, faults=["expire@2"])
    _, cursor = client.page(pageSize=1)
    assert [client.get(pageSize=1, cursor=cursor).status_code for _ in range(2)] == [400, 400]
    _, cursor = client.page(pageSize=1)
    assert client.get(pageSize=1, cursor=cursor).status_code == 200
    assert client.service.violations == []


def test_the_last_cursor_can_be_null(sandbox: Sandbox) -> None:
    """`"nextCursor": null` on the last page only."""
    client = sandbox(*ABCD, faults=["null-cursor@*"])
    first = client.get(pageSize=3).json()
    last = client.get(pageSize=3, cursor=first["nextCursor"]).json()
    assert first["nextCursor"]
    assert last["nextCursor"] is None


def test_the_cursor_of_the_request_can_come_back(sandbox: Sandbox) -> None:
    """A client that follows it asks for the same page for ever."""
    client = sandbox(*ABCD, faults=["same-cursor@2-"])
    _, cursor = client.page(pageSize=1)
    assert client.page(pageSize=1, cursor=cursor) == (["c"], cursor)


def test_cursors_can_go_in_a_circle(sandbox: Sandbox) -> None:
    """With `back`, the cursor comes from that many pages before."""
    client = sandbox(*ABCD, faults=["same-cursor:back=1@3"])
    _, first = client.page(pageSize=1)
    _, second = client.page(pageSize=1, cursor=first)
    assert client.page(pageSize=1, cursor=second) == (["b"], first)


def test_a_fault_does_not_hide_a_violation(sandbox: Sandbox) -> None:
    """A request is judged even where a fault answers it."""
    client = sandbox(faults=["status@1"])
    assert client.get(order="up").status_code == 503
    assert client.service.violations


def test_hidden_events_appear_with_their_request(sandbox: Sandbox) -> None:
    """Requests before that number miss them."""
    client = sandbox(*ABCD[:1])
    client.service.add(ABCD[1:2], visible_from_request=3)
    client.service.add_raw(
        [b'{"id":"r","occurredAt":"2024-01-01T00:00:00Z","action":{"type":"t"}}'], 3
    )
    assert [sorted(client.page()[0]) for _ in range(3)] == [["a"], ["a"], ["a", "b", "r"]]


def test_late_events_appear_once_the_newest_was_served(sandbox: Sandbox) -> None:
    """An export that has passed their place misses them; the next one does not."""
    client = sandbox(
        an_event(id="old", at="2024-01-01T00:00:00Z"), an_event(id="new", at="2024-01-03T00:00:00Z")
    )
    client.service.add_late([an_event(id="late", at="2024-01-02T00:00:00Z")])
    assert client.ids(order="asc", pageSize=1) == ["old", "new"]
    assert client.ids(order="asc", pageSize=1) == ["old", "late", "new"]
