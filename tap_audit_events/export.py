"""The ordered pages of a run's windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tap_audit_events.events import Page
from tap_audit_events.windows import Window

PagesOf = Callable[[Window], Iterator[Page]]
"""Reads the pages of one window in order."""


def export(windows: Iterable[Window], pages_of: PagesOf) -> Iterator[tuple[Window, Page]]:
    """Each page with its window: windows in the order of time, a window's pages in the service's.

    One window after the other; a page is asked for only when the one before it has been used.
    """
    for window in windows:
        for page in pages_of(window):
            yield window, page
