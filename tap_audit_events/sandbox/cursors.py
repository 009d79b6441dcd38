"""The cursors the service gave out: where each continues, and what it was given out for."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from tap_audit_events.sandbox.answers import invalid, refusal
from tap_audit_events.sandbox.store import Key


@dataclass(frozen=True)
class Issued:
    """A cursor that was given out.

    `position` is the place after which the next page begins, None the very beginning;
    `filters` are the other parameters of the request that got the cursor, `parent` is the cursor
    of that request.
    """

    position: Key | None
    filters: Mapping[str, str]
    request_number: int
    parent: str | None


class Cursors:
    """Cursors that are never the same text twice, also where they mark the same position."""

    def __init__(self, lifetime_requests: int | None) -> None:
        """Let a cursor live for that many requests after its own, for ever with None."""
        self._lifetime_requests = lifetime_requests
        self._issued: dict[str, Issued] = {}
        self._expired: set[str] = set()

    def issue(self, issued: Issued) -> str:
        """A new cursor text."""
        text = _text(len(self._issued))
        self._issued[text] = issued
        return text

    def redeem(self, text: str, request_number: int) -> Issued:
        """What a cursor was given out for.

        Raises RefusedError, 400, where it never was or has expired: interface.md leaves open what
        happens then.
        """
        issued = self._issued.get(text)
        if issued is None:
            raise invalid("the cursor is none of this service", parameter="cursor")
        age = request_number - issued.request_number
        too_old = self._lifetime_requests is not None and age > self._lifetime_requests
        if too_old or text in self._expired:
            raise refusal(400, "cursorExpired", "the cursor has expired", {"parameter": "cursor"})
        return issued

    def expire(self, text: str) -> None:
        """Refuse a cursor from now on."""
        self._expired.add(text)

    def ancestor(self, text: str, steps: int) -> str:
        """The cursor that led to a cursor, so many pages back or as far as there is one."""
        for _ in range(steps):
            text = self._issued[text].parent or text
        return text


def _text(serial: int) -> str:
    """An opaque text that only arrives where it is percent-encoded once and decoded once."""
    digest = b64encode(blake2b(serial.to_bytes(8, "big"), digest_size=18).digest()).decode()
    return f"{digest[:12]}+/ &%2B={digest[12:]}=="
