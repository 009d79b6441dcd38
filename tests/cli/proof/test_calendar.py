"""The gaps of a calendar, without a picture."""

from datetime import date, datetime, timedelta

import pytest

from tap_audit_events.cli.proof.calendar_data import Calendar, Span, find_gaps, year_span


def at(month: int, day: int, hour: int = 0) -> datetime:
    return datetime(2026, month, day, hour)  # noqa: DTZ001 - in UTC


YEAR = at(1, 1), at(3, 1)


@pytest.mark.parametrize(
    ("covered", "gaps"),
    [
        ({}, [YEAR]),
        ({"a": [(datetime.min, at(4, 1))]}, []),  # noqa: DTZ901 - in UTC
        ({"a": [(at(2, 1), at(3, 1)), (at(1, 1), at(2, 1))]}, []),
        ({"a": [(at(1, 1), at(2, 1)), (at(1, 1), at(1, 5))]}, [(at(2, 1), at(3, 1))]),
        (
            {"a": [(at(1, 1), at(1, 9)), (at(1, 10), at(3, 1))], "b": [(at(1, 1), at(2, 27))]},
            [(at(1, 9), at(1, 10)), (at(2, 27), at(3, 1))],
        ),
        (
            {"a": [(at(1, 3), at(3, 1))], "b": [(at(1, 2), at(3, 1))]},
            [(at(1, 1), at(1, 3))],
        ),
    ],
)
def test_a_time_is_covered_only_if_all_organizations_cover_it(
    covered: dict[str, list[Span]], gaps: list[Span]
) -> None:
    """The records may overlap, as after a fork, and may be in any order."""
    assert find_gaps(covered, YEAR) == tuple(gaps)


def test_a_microsecond_is_not_a_gap() -> None:
    """An `end_date` may end with many nines, and loaders keep only its microseconds."""
    microsecond = timedelta(microseconds=1)
    end = YEAR[1] - microsecond
    covered = [(YEAR[0] + microsecond, at(2, 1) - microsecond), (at(2, 1), end)]
    assert find_gaps({"a": covered}, YEAR) == ()

    covered[0] = (YEAR[0], at(2, 1) - 2 * microsecond)
    assert find_gaps({"a": covered}, YEAR) == ((at(2, 1) - 2 * microsecond, at(2, 1)),)


def test_a_gap_is_split_into_parts_of_days() -> None:
    gap = (at(1, 1, 12), at(1, 3, 6))
    calendar = Calendar(2026, {}, (gap,), until=YEAR[1], organizations=1)

    parts = [calendar.gaps_of(date(2026, 1, day)) for day in (1, 2, 3, 4)]

    assert parts == [[(0.5, 1.0)], [(0.0, 1.0)], [(0.0, 0.25)], []]


def test_the_span_of_a_year_does_not_extend_into_the_future() -> None:
    assert year_span(2026, at(2, 1)) == (at(1, 1), at(2, 1))
    assert year_span(2026, datetime(2030, 1, 1)) == (at(1, 1), datetime(2027, 1, 1))  # noqa: DTZ001
    assert year_span(2026, datetime(2020, 1, 1)) == (at(1, 1), at(1, 1))  # noqa: DTZ001
