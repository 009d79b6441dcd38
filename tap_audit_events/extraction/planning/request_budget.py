"""Keeps the requests of a run within a bound, however its events lie."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import Final

from tap_audit_events.events.page import Page
from tap_audit_events.extraction.planning.window_reader import WindowReader

SPARE_SHARE: Final = 0.25
SPARE_REQUESTS: Final = 4
"""Requests beyond those of a sequential run: at most this share of them, and this many."""

COST_OF_CUT: Final = 2
"""Requests that the parts of a cut window may waste, beyond those that the whole one wastes."""

_ROUNDING: Final = 1e-6  # the largest error of a sum of shares


class RequestBudget:
    """Counts how much of each request a sequential run would have needed as well.

    The last page of a window may be nearly empty, so each window may waste up to one request.
    """

    def __init__(self, page_size: int) -> None:
        self._page_size = page_size
        self._requests = 0
        self._useful = 0.0

    def count(self, reader: WindowReader, page: Page) -> None:
        held = len(reader.window.held(page.sorted_instants))
        self._requests += 1
        if page.next_cursor is None:
            self._useful += held / self._page_size
        else:
            self._useful += held / len(page.instants) if page.instants else 1.0

    def count_again(self, pages: int) -> None:
        """Count that some pages of a window will be requested again."""
        self._useful -= pages

    def can_afford(self, more: int, readers: Sequence[WindowReader]) -> bool:
        """Whether that many more windows keep the run within its bound.

        `readers` are the windows that are not read to their end. However few events follow, each
        needs at most one request beyond the pages that its events fill; one of them needs no such
        request if more of its events are known to follow.
        """
        has_more = any(reader.has_more for reader in readers)
        pages = floor(self._useful + _ROUNDING) + 1 if has_more else ceil(self._useful - _ROUNDING)
        beyond = self._requests - pages + len(readers) + more
        return beyond <= SPARE_SHARE * pages + SPARE_REQUESTS
