"""The pages of the service, and the cursors that lead from one to the next."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b

from tap_audit_events.sandbox.data.store import Displacement, Key, Selection, Store
from tap_audit_events.sandbox.effects import page_size
from tap_audit_events.sandbox.faults import ActiveFaults, Fault
from tap_audit_events.sandbox.request import Query, ReceivedRequest
from tap_audit_events.sandbox.response import RefusedError, Response, invalid, page_response


@dataclass(frozen=True)
class IssuedCursor:
    """A cursor that was issued.

    Attributes:
        position: The key after which the next page begins, None for the first page.
        filters: The other parameters of the request that got the cursor.
        parent: The cursor of that request.
    """

    position: Key | None
    filters: Mapping[str, str]
    request_number: int
    parent: str | None


class Cursors:
    """Issues cursors; each has a different text, even for the same position."""

    def __init__(self, lifetime_requests: int | None) -> None:
        """Let each cursor expire after that many further requests; without a number, never."""
        self._lifetime_requests = lifetime_requests
        self._issued: dict[str, IssuedCursor] = {}
        self._expired: set[str] = set()

    def issue(self, issued: IssuedCursor) -> str:
        """A new cursor."""
        text = _text(len(self._issued))
        self._issued[text] = issued
        return text

    def redeem(self, text: str, request_number: int) -> IssuedCursor:
        """The record of a cursor.

        Raises RefusedError, 400, if it was never issued or has expired: interface.md does not say
        what happens then.
        """
        issued = self._issued.get(text)
        if issued is None:
            raise invalid("this service has not issued the cursor", parameter="cursor")
        age = request_number - issued.request_number
        too_old = self._lifetime_requests is not None and age > self._lifetime_requests
        if too_old or text in self._expired:
            raise RefusedError(
                400, "cursorExpired", "the cursor has expired", {"parameter": "cursor"}
            )
        return issued

    def expire(self, text: str) -> None:
        """Refuse a cursor from now on."""
        self._expired.add(text)

    def ancestor(self, text: str, steps: int) -> str:
        """The cursor `steps` pages before a cursor, or the first one if there are fewer pages."""
        for _ in range(steps):
            text = self._issued[text].parent or text
        return text


class Pages:
    """Divides the events that the store selects into pages."""

    def __init__(self, store: Store, cursors: Cursors) -> None:
        self._store = store
        self._cursors = cursors
        self._displaced: dict[Fault, Key] = {}

    def issued_cursor(
        self, request: ReceivedRequest, query: Query, faults: ActiveFaults
    ) -> IssuedCursor | None:
        """The record of the request's cursor, None for a first page.

        Raises RefusedError if the cursor cannot be used.
        """
        if query.cursor is None:
            return None
        if "expire" in faults:
            self._cursors.expire(query.cursor)
        issued = self._cursors.redeem(query.cursor, request.number)
        return replace(issued, position=None) if "ignore-cursor" in faults else issued

    def respond(
        self,
        request: ReceivedRequest,
        query: Query,
        issued: IssuedCursor | None,
        faults: ActiveFaults,
    ) -> Response:
        """The page of a request (interface.md 2.7 and 4.1, rules 1 to 3)."""
        after = issued.position if issued else None
        selection = _widened(query.selection, faults)
        size = page_size(faults, query.page_size)
        selected = self._store.rows_of(selection.action_types)
        rows, more = selected.page(selection, after, size, self._displacement(faults))
        keys = [key for key, _ in rows]
        if self._store.key_at(-1) in keys:
            self._store.reveal_late(request.number + 1)
        cursor: dict[str, str | None] = {}
        if query.cursor is not None and "same-cursor" in faults:
            cursor["nextCursor"] = self._cursors.ancestor(query.cursor, faults["same-cursor"].back)
        elif more or "empty" in faults:
            position = keys[-1] if keys else after
            given = IssuedCursor(position, request.filters, request.number, query.cursor)
            cursor["nextCursor"] = self._cursors.issue(given)
        elif "null-cursor" in faults:
            cursor["nextCursor"] = None
        elif "empty-cursor" in faults:
            cursor["nextCursor"] = ""
        return page_response([body.render(key) for key, body in rows], cursor)

    def _displacement(self, faults: ActiveFaults) -> Displacement | None:
        """The displaced event: the same one, even if others are added before it."""
        fault = faults.get("displaced")
        if fault is None:
            return None
        if fault not in self._displaced:
            ordinal = (len(self._store) + 1) // 2 if fault.event is None else fault.event
            key = self._store.key_at(ordinal - 1)
            if key is None:
                return None
            self._displaced[fault] = key
        return Displacement(self._displaced[fault], fault.places)


def _widened(selection: Selection, faults: ActiveFaults) -> Selection:
    """The selection without the bounds that faults ignore."""
    if "ignore-start" in faults:
        selection = replace(selection, start=None)
    return replace(selection, end=None) if "ignore-end" in faults else selection


def _text(serial: int) -> str:
    """An opaque text that arrives unchanged only if it is percent-encoded and decoded once."""
    digest = b64encode(blake2b(serial.to_bytes(8, "big"), digest_size=18).digest()).decode()
    return f"{digest[:12]}+/ &%2B={digest[12:]}=="
