"""The query string of a request, read as interface.md 4.1 has its parameters."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from tap_audit_events.sandbox.answers import invalid
from tap_audit_events.sandbox.instants import Instant, instant_of
from tap_audit_events.sandbox.store import Selection

PARAMETERS = ("actionTypes", "startTime", "endTime", "order", "pageSize", "cursor")
DEFAULT_PAGE_SIZE = 100
MAXIMUM_PAGE_SIZE = 1000


@dataclass(frozen=True)
class Query:
    """What a request asks for."""

    selection: Selection
    page_size: int
    cursor: str | None


def read_parameters(query_string: bytes) -> dict[str, str]:
    """The decoded parameters by name.

    Raises RefusedError for a text that is no query string, a parameter the interface does not have,
    and one that is there twice.
    """
    parameters: dict[str, str] = {}
    for name, value in _pairs(query_string):
        if name not in PARAMETERS:
            raise invalid(f"there is no parameter {name!r}", parameter=name)
        if name in parameters:
            raise invalid(f"the parameter {name} is there more than once", parameter=name)
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
