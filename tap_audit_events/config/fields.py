"""The fields of a declaration, and their values: converted one by one, with problems in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

import msgspec

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.events.instants import Instant, instant_of, text_of

T = TypeVar("T", bound=msgspec.Struct)

_KINDS: Final = {bool: "true or false", int: "a whole number, ", float: "a number, "}


def _unchanged(value: Any) -> Any:
    return value


def _whole(value: Any) -> Any:
    """A whole number as int, whatever its type."""
    if isinstance(value, float | Decimal):
        number = Decimal(value)
        is_whole = number.is_finite() and abs(number) < 2**63 and number == int(number)
        return int(number) if is_whole else value
    return value


def _time_text(value: Any) -> Any:
    """A moment or a day of Python as text."""
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ValueError(
                "has no time zone: use an aware datetime, such as datetime(2026, 1, 1, tzinfo=UTC)"
            )
        try:
            return text_of(instant_of(value))
        except OverflowError:
            raise ValueError("is outside of the years 1 to 9999 in UTC") from None
    return value.isoformat() if isinstance(value, date) else value


_PLAIN: Final[dict[Any, Callable[[Any], Any]]] = {
    int: _whole,
    float: _whole,
    Instant: _time_text,
}


@dataclass(frozen=True)
class Field:
    """A field of a declaration.

    Attributes:
        kind: the type without None.
        type: the same with the bounds and texts of each `Meta`.
        struct: the type of the field, or of its items, if that is a declaration too.
        is_list: whether it is a list.
        default: the value of a field that may be left out.
        is_required: whether it must be given.
        bounds: the bounds of a number, in words.
        expected: what it accepts, in words.
        plain: turns a value of Python into one of JSON.
        check: checks and converts a value of the right type.
    """

    kind: Any
    type: Any
    struct: type[msgspec.Struct] | None
    is_list: bool
    default: Any
    is_required: bool
    bounds: str
    expected: str
    plain: Callable[[Any], Any]
    check: Callable[[Any], Any]


@cache
def fields_of(struct: type[msgspec.Struct]) -> dict[str, Field]:
    """The fields that have a `Meta`, by name; others are no settings."""
    found = msgspec.structs.fields(struct)
    return {each.name: _field(each) for each in found if get_origin(each.type) is Annotated}


def _field(info: msgspec.structs.FieldInfo) -> Field:
    given, *metas = get_args(info.type)
    bare = get_args(given)[0] if type(None) in get_args(given) else given
    is_list = get_origin(bare) is tuple
    item = get_args(bare)[0] if is_list else bare
    struct = item if isinstance(item, type) and issubclass(item, msgspec.Struct) else None
    extra = {name: value for meta in metas for name, value in (meta.extra or {}).items()}
    bounds = next(filter(None, map(_bounds, metas)), "")
    return Field(
        kind=bare,
        type=Annotated[bare, *metas],
        struct=struct,
        is_list=is_list,
        default=info.default,
        is_required=info.required,
        bounds=bounds,
        expected=extra.get("expected") or _expected(bare, bounds),
        plain=_PLAIN.get(bare, _unchanged),
        check=extra.get("check", _unchanged),
    )


def _bounds(meta: msgspec.Meta) -> str:
    if meta.gt is not None:
        return f"above {meta.gt}, at most {meta.le}"
    if meta.ge is not None:
        return f"{meta.ge} or more" if meta.le is None else f"{meta.ge} to {meta.le}"
    return ""


def _expected(kind: Any, bounds: str) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    if issubclass(kind, msgspec.Struct):
        return f"an object with {', '.join(fields_of(kind))}"
    return f"{_KINDS[kind]}{bounds}"


def set_values(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are set, that is, neither null nor an empty text.

    Platforms send both for a field of a form that was left empty, and Meltano sends an empty text
    for an empty variable.
    """
    return {name: value for name, value in config.items() if value is not None and value != ""}


def read_fields(
    struct: type[msgspec.Struct],
    given: Mapping[str, Any],
    problems: list[str],
    *,
    path: str = "",
    hint: Callable[[Any], str] = lambda _: "",
) -> dict[str, Any]:
    """Convert the given values of a declaration's fields; the others are left out.

    A text for each thing to fix is added to `problems`: it begins with the path of the field, and
    ends with the hint for its value.
    """
    values = {}
    for name, field in fields_of(struct).items():
        if name in given:
            try:
                values[name] = convert(field, given[name], problems, path=f"{path}{name}")
            except ValueError as error:
                problems.append(f"{path}{name} {error}{hint(given[name])}")
    return values


def convert(field: Field, value: Any, problems: list[str], *, path: str) -> Any:
    """The value of a field; None if problems of fields inside of it were added.

    Raises:
        ValueError: what is wrong, and what is expected; meant to follow the path. Of the value, it
            contains only a number.
    """
    if field.struct and not field.is_list:
        return read_struct(field.struct, value, problems, path)
    if field.struct:
        if not isinstance(value, list | tuple) or not value:
            raise ValueError(f"must be {field.expected}")
        items = enumerate(value)
        return [read_struct(field.struct, item, problems, f"{path}[{n}]") for n, item in items]
    value = field.plain(value)
    try:
        converted = msgspec.convert(value, field.type)
    except (msgspec.ValidationError, ValueError):  # the latter for a lone surrogate
        raise ValueError(_refusal(field, value)) from None
    if isinstance(converted, str) and not converted.strip():
        raise ValueError(f"is empty: set it to {field.expected}")
    return field.check(converted)


def _refusal(field: Field, value: Any) -> str:
    """Why a value is refused that is of another type or outside the bounds."""
    if field.bounds and isinstance(value, int | float) and not isinstance(value, bool):
        accepted = field.bounds if isinstance(value, int) else field.expected
        return f"is {str(value)[:20]}: it must be {accepted}"
    return f"must be {'a string: ' if field.kind in (str, Instant) else ''}{field.expected}"


def read_struct(struct: type[T], value: Any, problems: list[str], path: str) -> T | None:
    """The value of a whole declaration; None if problems were added."""
    fields, before = fields_of(struct), len(problems)
    if not isinstance(value, Mapping):
        problems.append(f"{path} must be {_expected(struct, '')}")
        return None
    given = set_values(value)
    unknown = sorted(map(str, given.keys() - fields.keys()))
    has = f"it has {', '.join(fields)}"
    problems += [f"{path} has no setting {sanitize(name, 60)}: {has}" for name in unknown]
    required = {name: field for name, field in fields.items() if field.is_required}
    problems += [
        f"{path}.{name} is missing: set it to {field.expected}"
        for name, field in required.items()
        if name not in given
    ]
    values = read_fields(struct, given, problems, path=f"{path}.")
    return struct(**values) if len(problems) == before else None
