"""The paginator that reads ``nextCursor`` (interface.md 4.1, pagination rules)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from singer_sdk.pagination import BaseAPIPaginator

from tap_audit_events.errors import service_error, shown

if TYPE_CHECKING:
    from tap_audit_events.events import Envelope


class NextCursorPaginator(BaseAPIPaginator[str | None]):
    """Follows the cursors of one window until a page has none.

    It is fed the `Envelope` that was read from the response, so that a body is read only once. A
    page without events is a page like any other: only one without ``nextCursor`` is the last.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self._seen: set[int] = set()

    def continue_if_empty(self, response: Envelope) -> bool:  # type: ignore[override]
        """An empty page is no end (interface.md 4.1, rule 2)."""
        del response
        return True

    def get_next(self, response: Envelope) -> str | None:  # type: ignore[override]
        """The cursor of the next page, None at the end.

        Raises:
            ContractError: the window has had this cursor before.
        """
        cursor = response.next_cursor
        if cursor is None:
            return None
        if hash(cursor) in self._seen:
            raise service_error("cursor repeated", details=f"nextCursor {shown(cursor)}")
        self._seen.add(hash(cursor))
        return cursor
