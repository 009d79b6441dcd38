"""Faults on request: which requests go wrong, and how.

A fault is written `KIND[:OPTION=VALUE,...]@WHEN`, for example `status:code=429,retry-after=3@2`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias
from urllib.parse import unquote, unquote_to_bytes

from tap_audit_events.sandbox.request import ReceivedRequest

Kind: TypeAlias = Literal[
    "status", "body", "reset", "reset-reused", "cut", "hang", "drip", "wrong-length",
    "empty", "short", "displaced", "ignore-start", "ignore-end",
    "expire", "null-cursor", "empty-cursor", "same-cursor", "ignore-cursor",
]  # fmt: skip

STATUS_CODES: Final = range(200, 600)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way in which some requests go wrong; several faults may concern one request.

    Attributes:
        kind: What goes wrong:
            `status` responds with the status `code` and an error body, or with the bytes of
                `text`, as a gateway would;
            `body` responds with 200 and the bytes of `text`;
            `reset` resets the connection before any response;
            `reset-reused` does so if the connection has carried a request before;
            `cut` closes the connection after `sent_bytes` of the body, by default half of it;
            `hang` waits for `seconds` before it responds;
            `drip` sends the body `sent_bytes` at a time, by default one, `seconds` apart;
            `wrong-length` sends `Content-Length: 10` next to `Transfer-Encoding: chunked`;
            `empty` sends a page without events whose cursor continues at the same position;
            `short` sends at most `events` events, by default half a page;
            `displaced` shows one event `places` places later than the order says, in every
                result that includes it: the one with the ordinal `event` from the oldest, the
                middle one by default;
            `ignore-start` and `ignore-end` send events as if that bound were not given;
            `expire` refuses the cursor of the request with 400, from then on;
            `null-cursor` sends `"nextCursor": null` if it would be omitted;
            `empty-cursor` sends `"nextCursor": ""` if it would be omitted;
            `same-cursor` gives the request's own cursor again, or the one `back` pages before it;
            `ignore-cursor` sends the first page again, with a new cursor.
        when: The requests, numbered from 1: `3`, `3-5`, `3-`, `*/10` (every tenth), `*` (all), or
            several of them with commas.
        only: If given, the fault concerns only requests for which it is true, and `when`
            numbers just those.
    """

    kind: Kind
    when: str = "*"
    code: int = 503
    retry_after: str | None = None
    retry_after_date: float | None = None
    """As `Retry-After`, the HTTP date that lies that many seconds ahead."""
    err_code: str = "fault"
    msg: str = "a fault on request"
    location: str | None = None
    text: bytes | None = None
    content_type: str = "application/json"
    sent_bytes: int | None = None
    seconds: float = 0.0
    events: int | None = None
    places: int = 1
    event: int | None = None
    back: int = 0
    only: Callable[[ReceivedRequest], bool] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown kind, a bad `when`, and numbers out of their bounds."""
        if self.kind not in OPTIONS:
            raise _unknown(self.kind)
        if self.code not in STATUS_CODES:
            raise ValueError(f"the status {self.code} is not from 200 to 599")
        for name in ("sent_bytes", "seconds", "events", "places", "back"):
            if not (getattr(self, name) or 0) >= 0:
                raise ValueError(f"{name} is negative or not a number")
        if self.event is not None and self.event < 1:
            raise ValueError("event is not an ordinal: the oldest event is 1")
        if self.kind == "drip" and self.sent_bytes == 0:
            raise ValueError("a body cannot be sent 0 bytes at a time")
        for item in self.when.split(","):
            _bounds(item)

    @classmethod
    def parse(cls, spec: str) -> Self:
        """Read `KIND[:OPTION=VALUE,...]@WHEN`; texts may be percent-encoded.

        Raises ValueError with what is wrong with it.
        """
        try:
            return cls(**_read(spec))
        except ValueError as error:
            raise ValueError(f"fault {spec!r}: {error}") from error

    def concerns(self, number: int) -> bool:
        """Whether `when` includes the request of that number."""
        return any(number in _bounds(item) for item in self.when.split(","))


_Reader: TypeAlias = Callable[[str], Any]

OPTIONS: Final[dict[str, dict[str, _Reader]]] = {
    "status": {
        "code": int,
        "retry-after": unquote,
        "retry-after-date": float,
        "err-code": unquote,
        "msg": unquote,
        "location": unquote,
        "text": unquote_to_bytes,
        "content-type": unquote,
    },
    "body": {"text": unquote_to_bytes, "content-type": unquote},
    "reset": {},
    "reset-reused": {},
    "cut": {"bytes": int},
    "hang": {"seconds": float},
    "drip": {"bytes": int, "seconds": float},
    "wrong-length": {},
    "empty": {},
    "short": {"events": int},
    "displaced": {"places": int, "event": int},
    "ignore-start": {},
    "ignore-end": {},
    "expire": {},
    "null-cursor": {},
    "empty-cursor": {},
    "same-cursor": {"back": int},
    "ignore-cursor": {},
}
"""The options of each kind in the text form, and the functions that read their values."""

_FIELDS: Final = {"bytes": "sent_bytes"}
_FOR_EVER: Final = 2**62


def _read(spec: str) -> dict[str, Any]:
    head, at, when = spec.rpartition("@")
    if not at:
        raise ValueError("it does not say when: add @3, @3-5, @*/10 or @* for all requests")
    kind, colon, options = head.partition(":")
    if kind not in OPTIONS:
        raise _unknown(kind)
    fields = [_option(kind, option) for option in options.split(",")] if colon else []
    return {"kind": kind, "when": when, **dict(fields)}


def _option(kind: str, option: str) -> tuple[str, Any]:
    name, _, text = option.partition("=")
    known = OPTIONS[kind]
    if name not in known:
        there_are = f"there are {', '.join(known)}" if known else "it has none"
        raise ValueError(f"{name!r} is not an option of {kind}; {there_are}")
    try:
        return _FIELDS.get(name, name.replace("-", "_")), known[name](text)
    except ValueError as error:
        raise ValueError(f"{name} is not a number: {text!r}") from error


def _unknown(kind: str) -> ValueError:
    return ValueError(f"{kind!r} is not a kind of fault; there are {', '.join(OPTIONS)}")


def _bounds(item: str) -> range:
    """The numbers that one item of `when` stands for."""
    found = re.fullmatch(r"(\*)(?:/(\d+))?|(\d+)(-)?(\d+)?", item, re.ASCII)
    star, step, first, dash, last = found.groups() if found else (None,) * 5
    if star and step != "0":
        every = int(step or 1)
        return range(every, _FOR_EVER, every)
    if first and 1 <= int(first) <= int(last or _FOR_EVER):
        stop = int(last) if last else _FOR_EVER if dash else int(first)
        return range(int(first), stop + 1)
    raise ValueError(f"{item!r} names no requests; write 3, 3-5, 3-, */10 or *, with commas")


class FaultPlan:
    """The faults of a service, and how many requests each has counted."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._counted: list[int] = []

    def add(self, fault: Fault, requests_before: int) -> None:
        """Add a fault; without `only`, its `when` counts the requests before it too."""
        self._faults.append(fault)
        self._counted.append(0 if fault.only else requests_before)

    def concerning(self, request: ReceivedRequest) -> list[Fault]:
        """The faults of a request, in the order they were added."""
        return [fault for index, fault in enumerate(self._faults) if self._applies(index, request)]

    def _applies(self, index: int, request: ReceivedRequest) -> bool:
        fault = self._faults[index]
        if fault.only is not None and not fault.only(request):
            return False
        self._counted[index] += 1
        return fault.concerns(self._counted[index])
