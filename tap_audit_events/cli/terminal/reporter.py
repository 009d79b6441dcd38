"""Progress for people: a bar on a terminal, and a line at the end."""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.cli.terminal.process import write_stderr
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.window import Window
from tap_audit_events.reporting.progress import Progress, events_text
from tap_audit_events.reporting.progress_bar import ProgressBar, can_draw_bar

BAR_SECONDS: Final = 0.1


class Reporter:
    """Reports on one run that reads pages."""

    def __init__(self, end: Instant, *, quiet: bool) -> None:
        self.events = self._excluded = 0
        self._quiet = quiet
        self._started_at = time.monotonic()
        self._progress = Progress(Window(None, end))
        self._bar: ProgressBar | None = None
        if not quiet and can_draw_bar(os.environ):
            self._bar = ProgressBar(sys.stderr)

    def page(self, page: EventPage, chosen: EventPage | None = None) -> None:
        """Count a page, or the events that were chosen from it; show how far the run has come."""
        self._excluded += page.excluded
        if not page.instants:
            return
        self.events += len(page if chosen is None else chosen)
        self._progress.set_first_instant(page.instants[0])
        if self._bar is not None and self._progress.is_due(BAR_SECONDS):
            reached = page.instants[-1]
            text = self._progress.bar_text(delivered=self.events, reached=reached)
            self._bar.draw(self._progress.share(reached) or 0.0, text)

    def rows(self, count: int) -> None:
        """Show how many loaded rows are in the range so far; their total is not known."""
        if self._bar is not None and self._progress.is_due(BAR_SECONDS):
            self._bar.draw(0.0, f"{count:,} loaded rows")

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def done(self, sentence: str, note: str = "") -> None:
        """Show the line at the end: a sentence, how fast it went, and a note."""
        self.close()
        if not self._quiet:
            seconds = time.monotonic() - self._started_at
            rate = f", {self.events / seconds:,.0f} a second" if self.events else ""
            text = f"{sentence}: {events_text(self.events)} in {seconds:.1f} s{rate}"
            if self._excluded:
                text += f"; {self._excluded:,} left out by exclude_action_types"
            write_stderr(text + note)
