"""The text form of faults, the requests that they concern, and the faults of whole responses."""

import pytest
import requests

from tap_audit_events.sandbox import Fault
from tests.builders import an_event
from tests.sandbox.client import Client
from tests.sandbox.conftest import Sandbox


def statuses(client: Client, count: int) -> list[int]:
    return [client.get().status_code for _ in range(count)]


@pytest.mark.parametrize(
    ("when", "concerned"),
    [
        ("3", {3}),
        ("2-4", {2, 3, 4}),
        ("5-", {5, 6, 7}),
        ("1,5-6", {1, 5, 6}),
        ("*/3", {3, 6}),
        ("*", {1, 2, 3, 4, 5, 6, 7}),
    ],
)
def test_a_fault_concerns_the_requests_it_names(
    sandbox: Sandbox, when: str, concerned: set[int]
) -> None:
    """Requests are numbered from 1, and refused requests are counted too."""
    client = sandbox(faults=[f"status:code=500@{when}"])
    received = statuses(client, 7)
    assert {number for number, status in enumerate(received, 1) if status == 500} == concerned


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("hang:seconds=2.5@*", Fault(kind="hang", seconds=2.5)),
        ("same-cursor:back=2@2", Fault(kind="same-cursor", back=2, when="2")),
        ("cut:bytes=2@2", Fault(kind="cut", sent_bytes=2, when="2")),
        ("displaced:places=9,event=4@*", Fault(kind="displaced", places=9, event=4)),
        (
            "status:code=429,retry-after=soon,err-code=a%2Cb,msg=x=y@z@4",
            Fault(
                kind="status", code=429, retry_after="soon", err_code="a,b", msg="x=y@z", when="4"
            ),
        ),
        (
            "body:text=%7B%C3%A9%FF,content-type=text/html@1",
            Fault(kind="body", text="{é".encode() + b"\xff", content_type="text/html", when="1"),
        ),
    ],
)
def test_a_fault_can_be_written_as_text(spec: str, fault: Fault) -> None:
    """The text is parsed to the same value."""
    assert Fault.parse(spec) == fault


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("reset", "does not say when"),
        ("reset@0", "names no requests"),
        ("reset@5-3", "names no requests"),
        ("reset@*/0", "names no requests"),
        ("explode@1", "'explode' is not a kind of fault; there are status, body"),
        ("reset:code=1@1", "'code' is not an option of reset; it has none"),
        ("status:seconds=1@1", "'seconds' is not an option of status; there are code, retry-after"),
        ("status:code=many@1", "code is not a number: 'many'"),
        ("status:code=99@1", "99 is not from 200 to 599"),
        ("hang:seconds=-1@1", "seconds is negative"),
        ("displaced:event=0@1", "event is not an ordinal"),
        ("hang:seconds=nan@1", "seconds is negative or not a number"),
    ],
)
def test_the_error_about_an_invalid_text_says_what_is_wrong(spec: str, says: str) -> None:
    """The message quotes the text and names the mistake."""
    with pytest.raises(ValueError, match="fault") as refused:
        Fault.parse(spec)
    assert repr(spec) in str(refused.value)
    assert says in str(refused.value)


def test_a_fault_can_concern_only_some_requests(sandbox: Sandbox) -> None:
    """`when` numbers only the requests for which `only` is true."""
    fault = Fault(kind="status", when="2", only=lambda seen: seen.params.get("order") == "asc")
    client = sandbox(faults=[fault])
    orders = ["asc", "desc", "desc", "asc", "asc"]
    received = [client.get(order=order).status_code for order in orders]
    assert received == [200, 200, 200, 503, 200]


def test_a_status_has_the_error_body_of_the_interface(sandbox: Sandbox) -> None:
    """interface.md 7: the body has errCode, msg and vars."""
    client = sandbox(faults=["status:code=429,retry-after=3,err-code=slow,msg=Slow%20down@1"])
    response = client.get()
    assert response.status_code == 429
    assert response.headers["Retry-After"] == "3"
    assert response.json() == {"errCode": "slow", "msg": "Slow down", "vars": None}


@pytest.mark.parametrize(("kind", "status"), [("body", 200), ("status", 302)])
def test_a_fault_can_have_the_body_of_a_gateway(sandbox: Sandbox, kind: str, status: int) -> None:
    """The fault gives the bytes and the headers."""
    page = b"<html>\xff</html>"
    fault = Fault(kind=kind, code=302, text=page, content_type="text/html", location="/sign-in")
    response = sandbox(faults=[fault]).get()
    assert (response.status_code, response.content) == (status, page)
    assert response.headers["Content-Type"] == "text/html"
    assert response.headers.get("Location") == ("/sign-in" if status == 302 else None)


def test_a_fault_does_not_hide_a_violation(sandbox: Sandbox) -> None:
    """A request is checked even if a fault replaces the response."""
    client = sandbox(faults=["status@1"])
    assert client.get(order="up").status_code == 503
    assert client.service.violations


# While a response is sent

ABCD = [an_event(id=name) for name in "abcd"]


def test_a_reset_breaks_the_connection_without_a_response(sandbox: Sandbox) -> None:
    """The client sees a reset, not an orderly end, and may connect again."""
    client = sandbox(*ABCD, faults=["reset@1"])
    with pytest.raises(requests.exceptions.ConnectionError, match="Connection reset by peer"):
        client.get()
    assert client.get().status_code == 200
    assert [request.status for request in client.service.requests] == [0, 200]


def test_a_cut_body_is_shorter_than_its_length(sandbox: Sandbox) -> None:
    """Content-Length is that of the whole body, but the connection ends earlier."""
    client = sandbox(*ABCD, faults=["cut:bytes=10@1", "cut@2"])
    for _ in range(2):
        with pytest.raises(requests.exceptions.ChunkedEncodingError, match="IncompleteRead"):
            client.get()
    with client.session.get(client.url, stream=True) as whole:
        assert int(whole.headers["Content-Length"]) == len(whole.content)


def test_a_hang_keeps_the_client_waiting(sandbox: Sandbox) -> None:
    """No byte arrives before the client gives up; the next request is served."""
    client = sandbox(*ABCD, faults=["hang:seconds=600@1"])
    with pytest.raises(requests.exceptions.ReadTimeout):
        client.session.get(client.url, timeout=(60, 0.05))
    assert client.get().status_code == 200
