"""Faults on request: which requests go wrong, and how.

A fault is written `KIND[:OPTION=VALUE,...]@WHEN`, for example `status:code=429,retry-after=3@2`.
"""

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias
from urllib.parse import unquote, unquote_to_bytes

from tap_audit_events.sandbox.request import ReceivedRequest

FAULTS_HELP: Final = """\b
A fault is written KIND[:OPTION=VALUE,...]@WHEN. WHEN names requests, which are
numbered from 1: 3, 3-5, 3-, 2,4, */10 (every tenth), * (all).

\b
Instead of a page:
  status:code=429,retry-after=3@2  an error with this status; other options
                                   are err-code, msg and location
  body:text=%3Chtml%3E,content-type=text/html@1
                                   status 200 with these bytes, which are
                                   written percent-encoded
  reset@3                          the connection is reset

\b
Sending a response:
  cut:bytes=100@4                  the connection ends after 100 bytes of the
                                   body; without bytes=, after half of it
  hang:seconds=90@5                the response is sent after 90 seconds

\b
The events of a page:
  empty@*/10                       no events, but a cursor
  short:events=1@2-5               fewer events than requested; without
                                   events=, half as many
  displaced:places=300,event=50@*  the 50th oldest event is shown 300 places
                                   later than the order says, on whatever
                                   page that is; without event=, the middle
                                   event
  ignore-start@*                   startTime is ignored
  ignore-end@*                     endTime is ignored

\b
Cursors:
  expire@7                         the cursor is refused with 400
  null-cursor@*                    "nextCursor": null on the last page
  empty-cursor@*                   "nextCursor": "" on the last page
  same-cursor:back=1@9             the cursor of the page before, again
  ignore-cursor@2-                 the first page again, with a new cursor
"""

OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "status": ("code", "retry-after", "err-code", "msg", "location", "text", "content-type"),
    "body": ("text", "content-type"),
    "cut": ("bytes",),
    "hang": ("seconds",),
    "short": ("events",),
    "displaced": ("places", "event"),
    "same-cursor": ("back",),
    **dict.fromkeys(("reset", "empty", "ignore-start", "ignore-end", "expire", "null-cursor",
                     "empty-cursor", "ignore-cursor"), ()),
}  # fmt: skip
"""The options of each kind of fault in the text form."""

_NUMBERS: Final = {"code": int, "bytes": int, "events": int, "places": int, "event": int,
                   "back": int, "seconds": float}  # fmt: skip
"""The options that are numbers; the others are texts."""

_FOR_EVER: Final = 2**62


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way in which some requests go wrong; several faults may concern one request.

    Attributes:
        kind: What goes wrong, one of those in `FAULTS_HELP`.
        when: The requests, numbered from 1: `3`, `3-5`, `3-`, `*/10` (every tenth), `*` (all), or
            several of them with commas.
        only: If given, the fault concerns only requests for which it is true, and `when`
            numbers just those.
    """

    kind: str
    when: str = "*"
    code: int = 503
    retry_after: str | None = None
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
        if not 200 <= self.code <= 599:
            raise ValueError(f"the status {self.code} is not from 200 to 599")
        for name in ("sent_bytes", "seconds", "events", "places", "back"):
            if not (getattr(self, name) or 0) >= 0:
                raise ValueError(f"{name} is negative or not a number")
        if self.event is not None and self.event < 1:
            raise ValueError("event is not an ordinal: the oldest event is 1")
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
    field = "sent_bytes" if name == "bytes" else name.replace("-", "_")
    if name in _NUMBERS:
        try:
            return field, _NUMBERS[name](text)
        except ValueError as error:
            raise ValueError(f"{name} is not a number: {text!r}") from error
    return field, unquote_to_bytes(text) if name == "text" else unquote(text)


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


ActiveFaults: TypeAlias = Mapping[str, Fault]
"""The faults that concern one request, by their kind."""


class FaultPlan:
    """The faults of a service, and how many requests each has counted."""

    def __init__(self) -> None:
        self._counted: list[tuple[Fault, itertools.count[int]]] = []

    def add(self, fault: Fault, requests_before: int) -> None:
        """Add a fault; without `only`, its `when` counts the requests before it too."""
        numbers = itertools.count(1 if fault.only else requests_before + 1)
        self._counted.append((fault, numbers))

    def concerning(self, request: ReceivedRequest) -> ActiveFaults:
        """The faults of a request, in the order they were added; of each kind the first."""
        active: dict[str, Fault] = {}
        for fault, numbers in self._counted:
            if (fault.only is None or fault.only(request)) and fault.concerns(next(numbers)):
                active.setdefault(fault.kind, fault)
        return active
