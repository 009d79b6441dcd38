"""The paginator that reads ``nextCursor`` (interface.md 4.1, pagination rules)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from singer_sdk.pagination import BaseAPIPaginator

from tap_audit_events.errors.exceptions import sanitize, service_error

RECENT_CURSORS: Final = 10_000

if TYPE_CHECKING:
    from tap_audit_events.events.page import Envelope


class NextCursorPaginator(BaseAPIPaginator[str | None]):
    """Follows the cursors of one window until a page has none.

    It is fed the `Envelope` that was read from the response, so that a body is read only once. A
    page without events is a page like any other: only one without ``nextCursor`` is the last.
    """

    def __init__(self) -> None:
        super().__init__(None)
        self._recent: dict[str, None] = {}
        self._milestone: str | None = None
        self._next_milestone = 1

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
        if cursor in self._recent or cursor == self._milestone:
            raise service_error("AE-CURSOR-REPEATED", details=f"nextCursor {sanitize(cursor)}")
        self._remember(cursor)
        return cursor

    def _remember(self, cursor: str) -> None:
        """Keep the newest cursors, and one more at each power of two, which meets any longer cycle.

        That one is Brent's way of finding a cycle: it needs no more memory for more pages.
        """
        self._recent[cursor] = None
        if len(self._recent) > RECENT_CURSORS:
            del self._recent[next(iter(self._recent))]
        if self.count >= self._next_milestone:
            self._milestone = cursor
            self._next_milestone *= 2
