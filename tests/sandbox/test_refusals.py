"""Refused requests, their errors and what the service records: interface.md 4.1, 5, 7, 8."""

from typing import Any

import pytest
import requests

from tap_audit_events.sandbox import ACCESS_TOKEN, ORGANIZATION_ID
from tests.builders import an_event
from tests.sandbox.client import Client
from tests.sandbox.conftest import Sandbox

MIDNIGHT = "2024-01-01T00:00:00Z"


def assert_error(response: requests.Response, status: int) -> None:
    """Check that the response is an error in the shape of interface.md 7."""
    body = response.json()
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/json"
    assert set(body) == {"errCode", "msg", "vars"}
    assert body["errCode"]
    assert body["msg"]
    assert body["vars"] is None or isinstance(body["vars"], dict)


def with_path(client: Client, path: str) -> requests.Response:
    base_url = client.url.partition("/v1")[0]
    return client.session.get(base_url + path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pageSize", "0"),
        ("pageSize", "1001"),
        ("pageSize", "+5"),
        ("order", "ASC"),
        ("startTime", "2024-01-01"),
        ("startTime", "2024-01-01T00:00:00"),
        ("startTime", "2024-02-30T00:00:00Z"),
        ("endTime", "2024-01-01T24:00:00Z"),
        ("endTime", "2024-01-01T00:00:61Z"),
        ("endTime", "2024-01-01T00:00:00+24:00"),
        ("actionTypes", ""),
        ("actionTypes", "one,,two"),
        ("cursor", "made-up"),
        ("limit", "10"),
    ],
)
def test_a_parameter_outside_the_interface_is_400_and_a_violation(
    sandbox: Sandbox, name: str, value: str
) -> None:
    """4.1: each parameter has its type and bounds, and there are no other parameters."""
    client = sandbox(an_event())
    assert_error(client.get(**{name: value}), 400)
    assert len(client.service.violations) == 1
    assert client.service.violations[0].startswith("request 1: ")


def test_an_end_before_the_start_is_400(sandbox: Sandbox) -> None:
    """4.1: endTime must not be earlier than startTime, by any fraction and in any offset."""
    client = sandbox()
    bounds = {"startTime": "2024-01-01T00:00:00.1Z", "endTime": "2024-01-01T01:00:00.09+01:00"}
    assert_error(client.get(**bounds), 400)
    assert client.service.violations


@pytest.mark.parametrize(
    "query",
    [
        "order=asc&order=asc",
        "order",
        "order=%ff",
        "startTime=" + MIDNIGHT[:-1] + "+00:00",
    ],
)
def test_a_query_string_that_cannot_be_read_is_400(sandbox: Sandbox, query: str) -> None:
    """Repeated, nameless or wrongly encoded parameters are outside the interface."""
    client = sandbox()
    assert_error(client.session.get(f"{client.url}?{query}"), 400)
    assert client.service.violations


@pytest.mark.parametrize(
    ("organization", "status", "violations"),
    [
        ("acme", 400, 1),
        ("00000000-0000-4000-8000-000000000000", 403, 0),
        (ORGANIZATION_ID.upper(), 200, 0),
    ],
)
def test_only_the_organization_of_the_token_is_served(
    sandbox: Sandbox, organization: str, status: int, violations: int
) -> None:
    """4.1 and 5, rule 4: it is a UUID, and the token's owner is an administrator of it."""
    client = sandbox()
    response = with_path(client, f"/v1/organizations/{organization}/audit_events")
    assert response.status_code == status
    assert len(client.service.violations) == violations


def test_a_request_without_a_token_is_401_and_a_violation(sandbox: Sandbox) -> None:
    """5, rules 1 and 5: every request carries the header."""
    client = sandbox()
    del client.session.headers["Authorization"]
    assert_error(client.get(), 401)
    assert client.service.violations


@pytest.mark.parametrize(
    "header",
    ["Bearer other_pat_token", f"Token {ACCESS_TOKEN}", ACCESS_TOKEN, "Bearer", "Bearer \xff"],
)
def test_a_wrong_token_is_401_and_not_a_violation(sandbox: Sandbox, header: str) -> None:
    """5, rule 5: a correct client may hold a token that is not valid."""
    client = sandbox()
    client.session.headers["Authorization"] = header
    assert_error(client.get(), 401)
    assert client.service.violations == []


@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"/v2/organizations/{ORGANIZATION_ID}/audit_events",
        f"/v1/organizations/{ORGANIZATION_ID}/audit_events/",
    ],
)
def test_another_path_is_404(sandbox: Sandbox, path: str) -> None:
    """1: the operation has the only path."""
    client = sandbox()
    assert_error(with_path(client, path), 404)
    assert client.service.violations


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_another_method_is_405(sandbox: Sandbox, method: str) -> None:
    """1: the operation is a GET."""
    client = sandbox()
    response = client.session.request(method, client.url)
    assert_error(response, 405)
    assert response.headers["Allow"] == "GET"
    assert client.service.violations


@pytest.mark.parametrize("body", [b"{}", iter([b"{}"])], ids=["with a length", "in chunks"])
def test_a_request_with_a_body_is_400(sandbox: Sandbox, body: Any) -> None:
    """4.1: a request has no body."""
    client = sandbox()
    assert_error(client.session.get(client.url, data=body), 400)
    assert client.service.violations


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"pageSize": 1}, {"pageSize": 2}),
        ({"pageSize": 1, "order": "asc"}, {"pageSize": 1, "order": "desc"}),
        ({"pageSize": 1, "endTime": "2030-01-01T00:00:00Z"}, {"pageSize": 1}),
    ],
)
def test_other_parameters_on_the_next_page_are_a_violation(
    sandbox: Sandbox, first: dict[str, Any], then: dict[str, Any]
) -> None:
    """4.1, rule 4: the client must send the same ones. The service responds nevertheless."""
    client = sandbox(an_event(id="a"), an_event(id="b"), an_event(id="c"))
    _, cursor = client.page(**first)
    assert client.get(**then, cursor=cursor).status_code == 200
    assert len(client.service.violations) == 1
    assert "rule 4" in client.service.violations[0]


def test_a_request_beyond_the_rate_limit_is_429_until_the_time_in_retry_after(
    sandbox: Sandbox,
) -> None:
    """8: the limit yields 429. After `Retry-After`, requests are accepted again."""
    now = [100.0]
    client = sandbox(rate_limit=2, clock=lambda: now[0])
    assert [client.get().status_code for _ in range(2)] == [200, 200]
    refused = client.get()
    assert_error(refused, 429)
    now[0] += int(refused.headers["Retry-After"])
    assert [client.get().status_code for _ in range(3)] == [200, 200, 429]
    assert client.service.violations == []


def test_a_cursor_expires_after_its_lifetime(sandbox: Sandbox) -> None:
    """A request with an expired cursor is 400, and not a violation."""
    client = sandbox(an_event(id="a"), an_event(id="b"), cursor_lifetime_requests=2)
    _, cursor = client.page(pageSize=1)
    responses = [client.get(pageSize=1, cursor=cursor) for _ in range(3)]
    assert [response.status_code for response in responses] == [200, 200, 400]
    assert_error(responses[-1], 400)
    assert client.service.violations == []


def test_every_request_is_recorded(sandbox: Sandbox) -> None:
    """A record has number, method, path, decoded parameters, headers, time and status."""
    client = sandbox(clock=lambda: 7.5)
    client.get(startTime="2024-01-01T00:00:00+00:00", pageSize=5)
    client.get(order="up")
    first, second = client.service.requests
    assert (first.number, first.method, first.status, first.seconds) == (1, "GET", 200, 7.5)
    assert first.path == f"/v1/organizations/{ORGANIZATION_ID}/audit_events"
    assert first.params == {"startTime": "2024-01-01T00:00:00+00:00", "pageSize": "5"}
    assert first.headers["authorization"] == f"Bearer {ACCESS_TOKEN}"
    assert (second.number, second.status) == (2, 400)
