"""Cursors are followed to the page without one, and never in a circle."""

import tracemalloc
from collections.abc import Iterator
from itertools import count, cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.errors.exceptions import ContractError, service_error
from tap_audit_events.events.instants import LATEST
from tap_audit_events.events.page import Page, UnusableEvent
from tap_audit_events.events.window import Window
from tap_audit_events.extraction.planning import pagination
from tap_audit_events.extraction.planning.pagination import (
    MAX_CURSOR_LENGTH,
    MAX_CYCLES,
    MAX_EMPTY_PAGES,
    MAX_REPEATED_PAGES,
    RECENT_CURSORS,
    Paginator,
)
from tests.extraction.planning.scheduling import instant

EVERYTHING = Window(None, LATEST)
NOTHING = Window(LATEST, LATEST)


def a_page(ids: list[str], cursor: str | None, seconds: float = 0) -> Page:
    return Page(ids, [instant(seconds)] * len(ids), [b""] * len(ids), next_cursor=cursor)


def test_pages_of_events_outside_of_the_window_are_not_progress() -> None:
    """Such pages count as empty, even if their ids are new."""
    paginator = Paginator()
    for number in range(MAX_EMPTY_PAGES):
        paginator.advance(a_page([f"{number}"], f"{number}", number), NOTHING)
    with pytest.raises(ContractError) as raised:
        paginator.advance(a_page(["last"], "last", 10**6), NOTHING)
    assert raised.value.code == "AE-EMPTY-PAGES"


def test_new_events_outside_of_the_window_next_to_a_known_one_are_not_progress() -> None:
    """Only a new event inside the window is progress."""
    known, paginator = instant(0), Paginator()
    pages = [
        Page(["known", f"{number}"], [known, instant(number + 1)], [b"", b""], f"{number}")
        for number in range(MAX_REPEATED_PAGES + 2)
    ]
    *pages, last = pages
    for page in pages:
        paginator.advance(page, Window(known, known))
    with pytest.raises(ContractError, match="AE-NO-PROGRESS"):
        paginator.advance(last, Window(known, known))


def a_page_set_aside(text: bytes, cursor: str) -> Page:
    unusable = UnusableEvent(0, text, service_error("AE-EVENT"))
    return Page(next_cursor=cursor, unusable=[unusable])


def test_events_that_are_set_aside_are_progress() -> None:
    """Any number of pages may have no others; but the same ones must not be sent for ever."""
    paginator = Paginator()
    for number in range(MAX_EMPTY_PAGES + 2):
        paginator.advance(a_page_set_aside(b"%d" % number, f"{number}"), EVERYTHING)
    for number in range(MAX_REPEATED_PAGES + 1):
        paginator.advance(a_page_set_aside(b"same", f"again {number}"), EVERYTHING)
    with pytest.raises(ContractError, match="AE-NO-PROGRESS"):
        paginator.advance(a_page_set_aside(b"same", "last"), EVERYTHING)


@pytest.fixture
def _few_recent_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep so few recent ids that longer cycles are noticed by the page that is kept longer."""
    monkeypatch.setattr(pagination, "MAX_RECENT_IDS", 3)


def follow(pages: Iterator[Page], most: int, paginator: Paginator | None = None) -> int:
    """Read pages up to the last one, at most so many, and return how many were read."""
    reader = paginator or Paginator()
    for number, page in enumerate(islice(pages, most), 1):
        reader.advance(page, EVERYTHING)
        assert reader.cursor == page.next_cursor
        if reader.is_finished:
            return number
    return most


def pages_until_error(pages: Iterator[Page], most: int) -> tuple[str, int]:
    """The code of the error that ends the pages, and the number of the page that raises it."""
    paginator = Paginator()
    for number, page in enumerate(islice(pages, most), 1):
        try:
            paginator.advance(page, EVERYTHING)
        except ContractError as error:
            return error.code, number
    raise AssertionError(f"{most} pages and no error")


def always_new() -> Iterator[Page]:
    """Pages of new events with new cursors."""
    return (a_page([f"{number}-{each}" for each in range(3)], f"{number}") for number in count())


def repeated(ids: list[list[str]]) -> Iterator[Page]:
    """The same pages again and again, with new cursors."""
    return (a_page(each, f"{number}") for number, each in enumerate(cycle(ids)))


# The end of a window


@given(st.lists(st.integers(0, 5), max_size=30))
def test_only_a_page_without_a_cursor_is_the_last(sizes: list[int]) -> None:
    """Whether the pages before it are short or empty does not matter."""
    ids = [[f"{number}-{each}" for each in range(size)] for number, size in enumerate(sizes)]
    pages = [a_page(each, f"{number}") for number, each in enumerate(ids)]
    paginator = Paginator()
    assert (paginator.cursor, paginator.is_finished) == (None, False)
    assert follow(iter([*pages, a_page([], None)]), 1000, paginator) == len(sizes) + 1
    assert paginator.is_finished
    assert paginator.cursor is None


def test_a_cursor_may_have_16384_characters() -> None:
    """A longer one would not fit into a URL; the error says how long it is."""
    Paginator().advance(a_page(["1"], "é" * MAX_CURSOR_LENGTH), EVERYTHING)
    expected = r"AE-CURSOR-LENGTH: .*\(16,385 characters; the most is 16,384\)"
    with pytest.raises(ContractError, match=expected):
        Paginator().advance(a_page(["1"], "é" * (MAX_CURSOR_LENGTH + 1)), EVERYTHING)


# Repeated cursors


@pytest.mark.parametrize("length", [1, 2, 7, RECENT_CURSORS])
def test_a_cursor_that_is_repeated_soon_is_noticed_at_once(length: int) -> None:
    """It is an error even if each page brings new events."""
    cursors = cycle(map(str, range(length)))
    pages = (a_page([f"{number}"], next(cursors)) for number in count())
    assert pages_until_error(pages, 3000) == ("AE-CURSOR-REPEATED", length + 1)


@pytest.mark.parametrize("length", [RECENT_CURSORS + 1, 3000, 5000])
@pytest.mark.parametrize("before", [0, 500])
def test_a_long_cycle_of_cursors_is_noticed(length: int, before: int) -> None:
    """It takes at most four times as many pages as there are different cursors."""

    def pages() -> Iterator[Page]:
        for number in count():
            place = number if number < before else before + (number - before) % length
            yield a_page([f"{number}"], f"{place}")

    code, number = pages_until_error(pages(), 4 * (before + length))
    assert code == "AE-CURSOR-REPEATED"
    assert number > length


# Pages without progress


def test_a_thousand_empty_pages_are_read() -> None:
    """A service that filters after it has read its index may send many empty pages."""
    empty = [a_page([], f"empty {number}") for number in range(2 * MAX_EMPTY_PAGES)]
    pages = [*empty[:1000], a_page(["1"], "after"), *empty[1000:], a_page([], None)]
    assert MAX_EMPTY_PAGES == 1000
    assert follow(iter(pages), 5000) == len(pages)


def test_more_than_a_thousand_empty_pages_are_an_error() -> None:
    """A service must not keep a run going for ever."""
    empty = (a_page([], f"{number}") for number in count())
    assert pages_until_error(empty, 5000) == ("AE-EMPTY-PAGES", 1001)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 100, 1500])
@pytest.mark.parametrize("before", [0, 40])
def test_the_same_pages_again_and_again_are_an_error(length: int, before: int) -> None:
    """A gateway may ignore the cursor and send a new one each time; 30 repeats are allowed."""
    same = [[f"{number}", f"{number} too"] for number in range(length)]
    pages = [*islice(always_new(), before), *islice(repeated(same), 2 * length + 50)]
    renamed = (a_page(list(page.ids), f"{number}") for number, page in enumerate(pages))
    expected = before + length + MAX_REPEATED_PAGES + 1
    assert pages_until_error(renamed, len(pages)) == ("AE-NO-PROGRESS", expected)


def test_thirty_pages_without_new_events_are_allowed() -> None:
    """A service may repeat pages, or parts of them, before it continues."""
    whole = ["1", "2", "3"]
    parts = [whole, *[whole[number % 3 :] for number in range(30)], ["4"], whole, ["5"]]
    pages = [a_page(ids, f"{number}") for number, ids in enumerate(parts)]
    assert MAX_REPEATED_PAGES == 30
    assert follow(iter([*pages, a_page([], None)]), 100) == len(pages) + 1


@pytest.mark.usefixtures("_few_recent_ids")
@pytest.mark.parametrize("length", [6, 7, 100, 1500])
@pytest.mark.parametrize("before", [0, 33])
def test_long_cycles_of_pages_with_new_cursors_are_noticed(length: int, before: int) -> None:
    """They are noticed after a few rounds, in bounded memory."""
    same = [[f"again {number}"] for number in range(length)]
    pages = [*islice(always_new(), before), *islice(repeated(same), 12 * length + 200)]
    renamed = (a_page(list(page.ids), f"{number}") for number, page in enumerate(pages))
    code, number = pages_until_error(renamed, len(pages))
    assert code == "AE-NO-PROGRESS"
    assert number > before + MAX_CYCLES * length


def test_the_memory_of_a_paginator_does_not_grow() -> None:
    """A window may have any number of pages, and cursors of any length."""
    paginator = Paginator()

    def read(first: int, last: int) -> None:
        for number in range(first, last):
            ids = [f"{number}-{each}" for each in range(3)]
            paginator.advance(a_page(ids, f"{number:016000}", seconds=number), EVERYTHING)

    tracemalloc.start()
    try:
        read(0, 2000)
        before, _ = tracemalloc.get_traced_memory()
        read(2000, 6000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 30_000
