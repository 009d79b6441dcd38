"""The pages of the service: which events a request gets, and where the next page begins."""

from collections.abc import Sequence

from tap_audit_events.sandbox import effects
from tap_audit_events.sandbox.answers import Answer, page_answer
from tap_audit_events.sandbox.cursors import Cursors, Issued
from tap_audit_events.sandbox.faults import Fault
from tap_audit_events.sandbox.query import Query
from tap_audit_events.sandbox.seen import SeenRequest
from tap_audit_events.sandbox.store import Row, Store


class Pages:
    """Cuts what the store selects into pages."""

    def __init__(self, store: Store, cursors: Cursors) -> None:
        self._store = store
        self._cursors = cursors

    def issued(self, seen: SeenRequest, query: Query, faults: Sequence[Fault]) -> Issued | None:
        """What the request's cursor was given out for, None for a first page.

        Raises RefusedError where the cursor is not one to continue with.
        """
        if query.cursor is None:
            return None
        if any(fault.kind == "expire" for fault in faults):
            self._cursors.expire(query.cursor)
        return self._cursors.redeem(query.cursor, seen.number)

    def answer(
        self, seen: SeenRequest, query: Query, issued: Issued | None, faults: Sequence[Fault]
    ) -> Answer:
        """The page of a request (interface.md 2.7 and 4.1, rules 1 to 3)."""
        after = issued.position if issued else None
        size = effects.page_size(faults, query.page_size)
        rows, more = self._store.page(query.selection, after, size)
        if any(row.key == self._store.newest for row in rows):
            self._store.reveal_late(seen.number + 1)
        kinds = {fault.kind for fault in faults}
        cursor = None
        if query.cursor is not None and "same-cursor" in kinds:
            cursor = self._cursors.ancestor(query.cursor, effects.pages_back(faults))
        elif more or "empty" in kinds:
            position = rows[-1].key if rows else after
            given = Issued(position, seen.filters, seen.number, query.cursor)
            cursor = self._cursors.issue(given)
        return page_answer(_bodies(rows), cursor, null_cursor="null-cursor" in kinds)


def _bodies(rows: Sequence[Row]) -> list[bytes]:
    return [row.body for row in rows]
