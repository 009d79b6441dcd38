"""A request as the sandbox received it, and the checks that the interface prescribes for it."""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from tap_audit_events.sandbox.data.instants import Instant, instant_of
from tap_audit_events.sandbox.data.store import Selection
from tap_audit_events.sandbox.response import RefusedError, invalid

PARAMETERS = ("actionTypes", "startTime", "endTime", "order", "pageSize", "cursor")
DEFAULT_PAGE_SIZE = 100
MAXIMUM_PAGE_SIZE = 1000

_OPERATION = re.compile(r"/v1/organizations/([^/]+)/audit_events")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class ReceivedRequest:
    """A request with the names of its headers in lower case and its parameters decoded.

    Attributes:
        number: Its number; all requests are counted from 1.
        seconds: When it arrived, by the service's clock.
        reused: Whether its connection had carried a request before.
        status: The status of the response, 0 if the connection was reset.
    """

    number: int
    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    seconds: float
    reused: bool = False
    status: int = 0

    @property
    def filters(self) -> dict[str, str]:
        """The parameters that must stay the same on every page (interface.md 4.1, rule 4)."""
        return {name: value for name, value in self.params.items() if name != "cursor"}


@dataclass(frozen=True)
class Query:
    """What the parameters of a request mean."""

    selection: Selection
    page_size: int
    cursor: str | None


def check_request(request: ReceivedRequest, access_token: str) -> str:
    """The organization in the path of the one operation.

    Raises RefusedError for another path (404) or method (405), for a body (400), and without the
    token (401: interface.md 5, rules 1 and 5).
    """
    found = _OPERATION.fullmatch(request.path)
    if found is None:
        raise RefusedError(404, "notFound", f"there is nothing at {request.path}", violation=True)
    if request.method != "GET":
        message = f"{request.method} is not allowed here"
        allow = (("allow", "GET"),)
        raise RefusedError(405, "methodNotAllowed", message, headers=allow, violation=True)
    headers = request.headers
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise invalid("the request has a body")
    given = headers.get("authorization")
    if given is None:
        message = "the header Authorization is missing"
        raise RefusedError(401, "unauthorized", message, violation=True)
    if not hmac.compare_digest(given.encode(), f"Bearer {access_token}".encode()):
        raise RefusedError(401, "unauthorized", "the access token is not valid")
    return found[1]


def check_organization(given: str, organization_id: str) -> None:
    """Raise RefusedError: 400 if it is not a UUID, 403 if it is another organization."""
    if _UUID.fullmatch(given) is None:
        raise invalid("the organization id is not a UUID", organizationId=given)
    if given.lower() != organization_id.lower():
        message = "the token's owner is not an administrator of this organization"
        raise RefusedError(403, "forbidden", message, {"organizationId": given})


def read_parameters(query_string: bytes) -> dict[str, str]:
    """The decoded parameters by name.

    Raises RefusedError for a text that is not a query string, a parameter the interface does not
    have, and one that is given twice.
    """
    parameters: dict[str, str] = {}
    for name, value in _pairs(query_string):
        if name not in PARAMETERS:
            raise invalid(f"there is no parameter {name!r}", parameter=name)
        if name in parameters:
            raise invalid(f"the parameter {name} is given more than once", parameter=name)
        parameters[name] = value
    return parameters


def read_query(parameters: Mapping[str, str]) -> Query:
    """What the parameters mean; raises RefusedError for a value outside the interface."""
    start = _instant(parameters, "startTime")
    end = _instant(parameters, "endTime")
    if start and end and end < start:
        raise invalid("endTime is earlier than startTime", **parameters)
    selection = Selection(_action_types(parameters), start, end, _is_descending(parameters))
    return Query(selection, _page_size(parameters), parameters.get("cursor"))


def _pairs(query_string: bytes) -> list[tuple[str, str]]:
    if not query_string:
        return []
    try:
        text = query_string.decode("ascii")
        return parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict")
    except ValueError as error:
        raise invalid("the query string cannot be read") from error


def _instant(parameters: Mapping[str, str], name: str) -> Instant | None:
    if name not in parameters:
        return None
    try:
        return instant_of(parameters[name])
    except ValueError as error:
        raise invalid(f"{name}: {error}", parameter=name, value=parameters[name]) from error


def _action_types(parameters: Mapping[str, str]) -> frozenset[str] | None:
    if "actionTypes" not in parameters:
        return None
    types = parameters["actionTypes"].split(",")
    if not all(types):
        raise invalid("actionTypes names an empty action type", parameter="actionTypes")
    return frozenset(types)


def _is_descending(parameters: Mapping[str, str]) -> bool:
    order = parameters.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid("order is neither asc nor desc", parameter="order", value=order)
    return order == "desc"


def _page_size(parameters: Mapping[str, str]) -> int:
    text = parameters.get("pageSize", str(DEFAULT_PAGE_SIZE))
    size = int(text) if re.fullmatch("[0-9]{1,9}", text) else 0
    if not 1 <= size <= MAXIMUM_PAGE_SIZE:
        message = f"pageSize is not an integer from 1 to {MAXIMUM_PAGE_SIZE}"
        raise invalid(message, parameter="pageSize", value=text)
    return size
