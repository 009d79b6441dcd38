"""JSON to Python and back: every digit of every number stays."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from tap_audit_events.errors.exceptions import MAX_TEXT_LENGTH, ContractError
from tap_audit_events.events.exact_json import HugeNumber, encode, excerpt, read_record
from tests.builders import TOO_DEEP

NINES, LONG = "9" * 4000, "9" * 4400
HUGE = "1e999999999999999999999"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-12", -12),
        ("18446744073709551616", 2**64),
        (NINES, int(NINES)),
        (f"-{NINES[1:]}", -int(NINES[1:])),
        (LONG, Decimal(LONG)),
        (f"-{LONG}", Decimal(f"-{LONG}")),
        ("0.10", Decimal("0.10")),
        ("-1.50e-7", Decimal("-1.50E-7")),
        ("1E+400", Decimal("1E+400")),
        ("0.1000000000000000055511151231257827", Decimal("0.1000000000000000055511151231257827")),
        (HUGE, HugeNumber(HUGE)),
        (f"-{HUGE}", HugeNumber(f"-{HUGE}")),
        ('"1.0"', "1.0"),
        ("true", True),
        ("null", None),
    ],
)
@pytest.mark.parametrize("other", ["0", HUGE, LONG])
def test_a_number_becomes_a_type_that_holds_all_its_digits(
    text: str, value: Any, other: str
) -> None:
    """The type does not depend on other numbers in the event or on the place of the number."""
    record = read_record(f'{{"a": {text}, "b": [{{"c": {text}}}], "other": {other}}}'.encode())
    for found in (record["a"], record["b"][0]["c"]):
        assert (type(found), str(found)) == (type(value), str(value))
        assert found == value


@pytest.mark.parametrize("text", ["0.10", "-12", NINES, LONG, "1E+400", HUGE, f"-{HUGE}"])
def test_a_number_is_written_as_it_was_read(text: str) -> None:
    body = f'{{"a":{text},"b":["é",{text}]}}'.encode()
    assert encode(read_record(body)) == body
    assert encode(read_record(msgspec.Raw(body))) == body


@pytest.mark.parametrize("other", ["", f', "b": {LONG}'])
def test_a_record_that_is_nested_too_deeply_is_an_error(other: str) -> None:
    """The error shows the beginning of the event."""
    text = b'{"id": "x"%b, "a": %b}' % (other.encode(), TOO_DEEP)
    with pytest.raises(ContractError, match="AE-NESTING") as raised:
        read_record(text)
    assert raised.value.details.startswith('\'{"id": "x"')


@pytest.mark.parametrize("start", range(4))
def test_an_excerpt_may_be_cut_within_a_character(start: int) -> None:
    """An excerpt shows the first few hundred characters, even if the bytes are cut within one."""
    text = "x" * start + "\U0001f600" * 2000
    assert excerpt(text.encode()) == f"'{text[:MAX_TEXT_LENGTH]}…'"
    assert excerpt(msgspec.Raw(text.encode())) == excerpt(text.encode())
