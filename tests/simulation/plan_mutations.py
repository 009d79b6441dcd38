"""Mistakes that a plan of windows could make: each loses, repeats or disorders events.

One more asks for more requests than the pages are worth.
"""

from typing import Any

from tap_audit_events.events.instants import EARLIEST, Instant, later, next_whole_second, text_of
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning.plan import Plan
from tap_audit_events.extraction.planning.window_reader import (
    WindowPage,
    WindowReader,
    WindowRequest,
)
from tests.simulation.mutations import Mutation, Patch


def a_window_ends_a_second_early(patch: Patch) -> None:
    """`endTime` of a window is a second before the next window starts."""

    def end_time(self: Window) -> str:
        if self.until is None:
            return text_of(next_whole_second(self.end))
        return text_of(
            max(self.start or EARLIEST, later(next_whole_second(self.until), seconds=-1))
        )

    patch.setattr(Window, "end_time", property(end_time))


def pages_are_taken_as_they_come(patch: Patch) -> None:
    """A window that is read ahead is delivered before an earlier one, with its STATE."""

    def next_page(self: Plan) -> WindowPage | None:
        self._readers.sort(key=lambda each: not each.ready_pages)
        return real(self)

    real = Plan.next_page
    patch.setattr(Plan, "next_page", next_page)


def a_fault_ahead_is_passed_over(patch: Patch) -> None:
    """A window that could not be read is left out."""

    def fail(self: Plan, request: WindowRequest, error: Exception) -> None:
        real(self, request, error)
        if request.reader.error is not None:
            request.reader.is_read, request.reader.error = True, None

    real = Plan.fail
    patch.setattr(Plan, "fail", fail)


def a_cut_loses_the_rest(patch: Patch) -> None:
    """The rest of a window that was cut is never requested."""

    def cut(self: WindowReader, at: Instant) -> WindowReader:
        rest = real(self, at)
        rest.is_read = True
        return rest

    real = WindowReader.cut
    patch.setattr(WindowReader, "cut", cut)


def a_window_continues_from_its_newest_event(patch: Patch) -> None:
    """An event out of order is lost if its window is given up."""

    def begun_again(self: Plan, reader: WindowReader, *more: Any, **options: Any) -> Any:
        window, newest = reader.window, reader.position
        again = real(self, reader, *more, **options)
        if again is not None and again is not reader and newest and newest < again.window.limit:
            reader.window = Window(window.start, window.end, newest)
            reader.is_read, reader._is_undecided = True, False
            again.window = again._requested_window = again.window.starting_at(newest)
            self._readers.insert(self._readers.index(again), reader)
        return again

    real = Plan._begun_again
    patch.setattr(Plan, "_begun_again", begun_again)


def windows_are_cut_without_a_budget(patch: Patch) -> None:
    """A run needs many more requests than a sequential one."""
    patch.setattr("tap_audit_events.extraction.planning.plan.SPARE_REQUESTS", 1000)


IMPORTANT: list[Mutation] = [
    a_window_ends_a_second_early,
    pages_are_taken_as_they_come,
    a_cut_loses_the_rest,
]

OTHERS: list[Mutation] = [
    a_fault_ahead_is_passed_over,
    a_window_continues_from_its_newest_event,
    windows_are_cut_without_a_budget,
]
