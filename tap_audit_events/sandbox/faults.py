"""Faults on request: which requests go wrong, and how.

A fault is written `KIND[:OPTION=VALUE,...]@WHEN`, for example `status:code=429,retry-after=3@2`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias
from urllib.parse import unquote

from tap_audit_events.sandbox.seen import SeenRequest

Kind: TypeAlias = Literal[
    "status", "body", "reset", "cut", "hang",
    "empty", "short", "expire", "null-cursor", "same-cursor",
]  # fmt: skip

STATUS_CODES: Final = range(200, 600)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way in which some requests go wrong; several faults may meet in one request.

    Attributes:
        kind: What goes wrong:
            `status` answers with the status `code` and an error body;
            `body` answers 200 with the bytes of `text`;
            `reset` resets the connection before any answer;
            `cut` closes the connection after `sent_bytes` of the body, half of it with None;
            `hang` waits for `seconds` before it answers;
            `empty` sends a page without events whose cursor continues at the same place;
            `short` sends at most `events` events, half a page with None;
            `expire` refuses the cursor of the request with 400, from then on;
            `null-cursor` says `"nextCursor": null` where it would be left out;
            `same-cursor` gives the request's own cursor again, or the one `back` pages before it.
        when: The requests, numbered from 1: `3`, `3-5`, `3-`, `*/10` (each tenth), `*` (all), or
            several of them with commas.
        only: Where given, the fault concerns only requests for which it is true, and `when`
            numbers just those.
    """

    kind: Kind
    when: str = "*"
    code: int = 503
    retry_after: str | None = None
    retry_after_date: float | None = None
    """As `Retry-After`, the HTTP date that lies so many seconds ahead."""
    err_code: str = "fault"
    msg: str = "a fault on request"
    location: str | None = None
    text: bytes = b""
    content_type: str = "application/json"
    sent_bytes: int | None = None
    seconds: float = 0.0
    events: int | None = None
    back: int = 0
    only: Callable[[SeenRequest], bool] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown kind, a bad `when`, and numbers out of their bounds."""
        if self.kind not in OPTIONS:
            raise ValueError(f"{self.kind!r} is no kind of fault; there are {', '.join(OPTIONS)}")
        if self.code not in STATUS_CODES:
            raise ValueError(f"the status {self.code} is not from 200 to 599")
        for name in ("sent_bytes", "seconds", "events", "back"):
            if not (getattr(self, name) or 0) >= 0:
                raise ValueError(f"{name} is negative or no number")
        for item in self.when.split(","):
            _bounds(item)

    @classmethod
    def parse(cls, spec: str) -> Self:
        """Read `KIND[:OPTION=VALUE,...]@WHEN`; values may be percent-encoded.

        Raises ValueError that says what is wrong with it.
        """
        try:
            return cls(**_read(spec))
        except ValueError as error:
            raise ValueError(f"fault {spec!r}: {error}") from error

    def strikes(self, number: int) -> bool:
        """Whether `when` holds the request of that number."""
        return any(number in _bounds(item) for item in self.when.split(","))


_Reader: TypeAlias = Callable[[str], Any]

OPTIONS: Final[dict[str, dict[str, _Reader]]] = {
    "status": {
        "code": int,
        "retry-after": str,
        "retry-after-date": float,
        "err-code": str,
        "msg": str,
        "location": str,
    },
    "body": {"text": str.encode, "content-type": str},
    "reset": {},
    "cut": {"bytes": int},
    "hang": {"seconds": float},
    "empty": {},
    "short": {"events": int},
    "expire": {},
    "null-cursor": {},
    "same-cursor": {"back": int},
}
"""The options of each kind in the text form, and what reads their values."""

_FIELDS: Final = {"bytes": "sent_bytes"}
_FOR_EVER: Final = 2**62


def _read(spec: str) -> dict[str, Any]:
    head, at, when = spec.rpartition("@")
    if not at:
        raise ValueError("it does not say when: add @3, @3-5, @*/10 or @* for all requests")
    kind, colon, options = head.partition(":")
    if kind not in OPTIONS:
        raise ValueError(f"{kind!r} is no kind of fault; there are {', '.join(OPTIONS)}")
    fields = [_option(kind, option) for option in options.split(",")] if colon else []
    return {"kind": kind, "when": when, **dict(fields)}


def _option(kind: str, option: str) -> tuple[str, Any]:
    name, _, text = option.partition("=")
    known = OPTIONS[kind]
    if name not in known:
        there_are = f"there are {', '.join(known)}" if known else "it has none"
        raise ValueError(f"{name!r} is no option of {kind}; {there_are}")
    try:
        return _FIELDS.get(name, name.replace("-", "_")), known[name](unquote(text))
    except ValueError as error:
        raise ValueError(f"{name} is not a number: {text!r}") from error


def _bounds(item: str) -> range:
    """The numbers one item of `when` stands for."""
    found = re.fullmatch(r"(\*)(?:/(\d+))?|(\d+)(-)?(\d+)?", item, re.ASCII)
    star, step, first, dash, last = found.groups() if found else (None,) * 5
    if star and step != "0":
        each = int(step or 1)
        return range(each, _FOR_EVER, each)
    if first and 1 <= int(first) <= int(last or _FOR_EVER):
        stop = int(last) if last else _FOR_EVER if dash else int(first)
        return range(int(first), stop + 1)
    raise ValueError(f"{item!r} names no requests; write 3, 3-5, 3-, */10 or *, with commas")
