"""Date-times of RFC 3339 become instants that are exact to the last digit."""

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.instants import (
    EARLIEST,
    LATEST,
    brief,
    later,
    microseconds,
    parse_instant,
    seconds_between,
    text_of,
    utc_instants,
    utc_text,
)

MIDNIGHT = "2026-01-31T00:00:00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
moments = st.datetimes(
    min_value=datetime(2, 1, 1),  # noqa: DTZ001 - the strategy adds the zone
    max_value=datetime(9998, 12, 31),  # noqa: DTZ001
    timezones=st.builds(
        timezone, st.integers(-1439, 1439).map(lambda minutes: timedelta(minutes=minutes))
    ),
).map(lambda moment: moment.replace(microsecond=0))
fractions = st.text("0123456789", max_size=25)


def rfc3339(moment: datetime, fraction: str, letters: str = "TZ") -> str:
    """The text of a moment in its own offset, which is Z for UTC."""
    offset = moment.strftime("%z")
    zone = letters[1] if offset == "+0000" else f"{offset[:3]}:{offset[3:]}"
    digits = f".{fraction}" if fraction else ""
    date = f"{moment.year:04}-{moment:%m-%d}"
    return f"{date}{letters[0]}{moment:%H:%M:%S}{digits}{zone}"


def exact(moment: datetime, fraction: str) -> Fraction:
    whole = (moment - _EPOCH) // timedelta(seconds=1)
    return Fraction(whole) + (Fraction(int(fraction), 10 ** len(fraction)) if fraction else 0)


texts = st.tuples(moments, fractions, st.sampled_from(["TZ", "tz", "Tz", "tZ"])).map(
    lambda parts: (rfc3339(*parts), exact(parts[0], parts[1]), parts[1])
)


@given(texts, texts)
def test_instants_are_ordered_as_exact_moments(
    one: tuple[str, Fraction, str], other: tuple[str, Fraction, str]
) -> None:
    """Instants compare as exact rational numbers do, whatever offset, case and precision."""
    assert (parse_instant(one[0]) < parse_instant(other[0])) == (one[1] < other[1])
    assert (parse_instant(one[0]) == parse_instant(other[0])) == (one[1] == other[1])


@given(texts)
def test_utc_text_is_the_same_instant_with_the_same_digits(
    text: tuple[str, Fraction, str],
) -> None:
    """The UTC form names the same moment and keeps every digit, including zeros at the end."""
    form = utc_text(text[0])
    assert parse_instant(form) == parse_instant(text[0])
    assert form.endswith("Z")
    assert form[10] == "T"
    assert form[19:-1] == (f".{text[2]}" if text[2] else "")
    assert utc_text(form) == form


@given(moments, fractions, st.integers(-(10**9), 10**9))
def test_moving_an_instant_adds_seconds(moment: datetime, fraction: str, seconds: int) -> None:
    """An instant moves by exactly so many seconds, but not beyond the years 1 and 9999."""
    moved = later(parse_instant(rfc3339(moment, fraction)), seconds=seconds)
    try:
        expected = parse_instant(rfc3339(moment + timedelta(seconds=seconds), fraction))
    except (OverflowError, ValueError):
        expected = LATEST if seconds > 0 else EARLIEST
    assert moved == expected


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ("2016-12-31T23:59:60.750Z", "2017-01-01T00:00:00.750Z"),
        ("2017-01-01T01:59:60+02:00", "2017-01-01T00:00:00Z"),
        ("2026-03-01t00:30:00.10-00:00", "2026-03-01T00:30:00.10Z"),
        ("2026-03-01T00:30:00z", "2026-03-01T00:30:00Z"),
        ("2026-03-01T00:30:00+23:59", "2026-02-28T00:31:00Z"),
        ("2024-02-29T12:00:00.000000000001Z", "2024-02-29T12:00:00.000000000001Z"),
    ],
)
def test_a_time_in_another_form_becomes_the_same_instant_in_utc(text: str, form: str) -> None:
    """A leap second is the first second of the next minute, as in POSIX time."""
    assert utc_text(text) == form


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+0200",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:61Z",
        "2026-01-01T12:00:60Z",
        "2026-02-29T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "\uff12\uff10\uff12\uff16-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z\n",
        "2026-01-01T00:00:00Z\n2026-01-01T00:00:00Z",
    ],
)
def test_a_text_that_is_not_an_instant_is_refused(text: str) -> None:
    """Only RFC 3339 date-times that exist, with an offset, have an instant."""
    with pytest.raises(ValueError, match=r"^is not an? "):
        parse_instant(text)
    with pytest.raises(ValueError, match=r"^is not an? "):
        utc_text(text)
    for texts in ([text], [text, text_of(EARLIEST)], [text_of(EARLIEST), text]):
        assert utc_instants(texts) is None


@pytest.mark.parametrize(
    ("texts", "instants"),
    [
        (["2026-01-31T23:59:59Z"], ["2026-01-31T23:59:59"]),
        (["2026-01-31T00:00:00Z", f"{LATEST}Z"], [MIDNIGHT, LATEST]),
        (["2026-01-31T00:00:00.5Z", "2026-01-31T00:00:00.50Z"], ["2026-01-31T00:00:00.5"] * 2),
        (["2026-01-31T00:00:00.000Z", "2026-01-31T00:10:10Z"], [MIDNIGHT, "2026-01-31T00:10:10"]),
        (["1999-01-31T00:00:00.50Z"], ["1999-01-31T00:00:00.5"]),
        (["2026-01-31T00:00:00.100200Z"] * 3, ["2026-01-31T00:00:00.1002"] * 3),
        (["2026-01-31T00:00:00.0000000001Z"], ["2026-01-31T00:00:00.0000000001"]),
        (["2026-01-31T00:00:00Z", "2026-01-31T00:00:00+00:00"], None),
        (["2026-01-31T00:00:00Z", "2026-01-31T24:00:00Z"], None),
        (["2026-01-31T00:00:00z"], None),
        (["2026-01-31T00:00:60Z"], None),
    ],
)  # fmt: skip
def test_many_instants_in_utc_form_are_read_at_once(
    texts: list[str], instants: list[str] | None
) -> None:
    """Reading all at once equals reading one by one, and refuses a text that is not in UTC form."""
    assert utc_instants(texts) == instants
    assert instants is None or instants == [parse_instant(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0001-01-01T00:00:00Z", 0),
        ("0001-01-01T00:00:01Z", 10**6),
        ("0001-01-01T00:00:00.1Z", 10**5),
        ("0001-01-01T00:00:00.000001Z", 1),
        ("0001-01-01T00:00:00.0000019Z", 1),
        ("0001-01-08T01:00:00.25Z", (7 * 86400 + 3600) * 10**6 + 250_000),
        ("1970-01-01T00:00:00.123456789Z", 719_162 * 86400 * 10**6 + 123_456),
    ],
)
def test_microseconds_are_counted_from_the_year_1(text: str, count: int) -> None:
    """Digits beyond the microsecond are cut off."""
    assert microseconds(parse_instant(text)) == count


@pytest.mark.parametrize(
    ("earlier", "until", "seconds"),
    [
        ("2026-01-31T00:00:00Z", "2026-01-31T00:00:00Z", 0.0),
        ("2026-01-31T00:00:00Z", "2026-02-01T00:00:01.5Z", 86401.5),
        ("2026-01-31T00:00:00.5Z", "2026-01-31T00:00:00Z", -0.5),
        ("2026-01-31T00:00:00.000001Z", "2026-01-31T00:00:00.000004Z", 3e-6),
        ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", 315_537_897_599.0),
    ],
)
def test_seconds_between_two_instants(earlier: str, until: str, seconds: float) -> None:
    assert seconds_between(parse_instant(earlier), parse_instant(until)) == seconds


def test_a_long_fraction_is_cut_in_messages() -> None:
    assert brief(parse_instant("2026-01-31T00:00:00Z")) == "2026-01-31T00:00:00Z"
    digits = "123456789012345"
    shown = brief(parse_instant(f"2026-01-31T00:00:00.{digits}Z"))
    assert shown == f"2026-01-31T00:00:00.{digits[:12]}Z"
