"""How a stored event differs from the one that the tap delivered."""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from tap_audit_events.events.instants import microseconds, parse_instant

LOST: Final = "lost"
REFUSED: Final = "the loader ends with an error"
CUT: Final = "cut to microseconds"
ROUNDED: Final = "rounded to microseconds"
DOUBLE: Final = "rounded to a double"
PYTHON_TEXT: Final = "Python text instead of JSON"
JSON_TEXT: Final = "JSON text"
NULL_ADDED: Final = "null, though it was missing"
NULL_LOST: Final = "null becomes nothing"
EMPTY_TEXT_LOST: Final = "empty text becomes nothing"
EMPTY_OBJECT_LOST: Final = "empty object becomes nothing"
ADDED: Final = "added"
CHANGED: Final = "changed"

Changes = dict[str, str]
"""What happened to a field, by its path; a field that was kept is not listed."""

_MISSING: Final = object()


def exact(text: str | bytes) -> Any:
    """The value of a JSON text, with every digit of its numbers."""
    return json.loads(text, parse_float=Decimal)


def changes(delivered: Mapping[str, Any], stored: Mapping[str, Any]) -> Changes:
    """The differences between an event and its stored form."""
    return dict(_differences("", delivered, stored))


def _differences(path: str, delivered: Any, stored: Any) -> Iterator[tuple[str, str]]:
    if isinstance(delivered, Mapping) and isinstance(stored, Mapping):
        for name in sorted({*delivered, *stored}):
            inner = f"{path}.{name}" if path else name
            pair = delivered.get(name, _MISSING), stored.get(name, _MISSING)
            yield from _differences(inner, *pair)
        return
    if path == "occurredAt" and isinstance(stored, str):
        verdict = _time_verdict(delivered, stored)
    else:
        verdict = _verdict(delivered, stored)
    if verdict is not None:
        yield path, verdict


def _time_verdict(delivered: str, stored: str) -> str | None:
    before, after = parse_instant(delivered), parse_instant(stored)
    if before == after:
        return None
    seconds, _, fraction = before.partition(".")
    if parse_instant(f"{seconds}.{fraction[:6]}Z") == after:
        return CUT
    return ROUNDED if microseconds(after) == microseconds(before) + 1 else CHANGED


def _verdict(delivered: Any, stored: Any) -> str | None:
    if delivered is _MISSING:
        return NULL_ADDED if stored is None else ADDED
    if stored is _MISSING:
        return _loss(delivered)
    if _same(delivered, stored):
        return None
    if isinstance(stored, str) and not isinstance(delivered, str):
        return _text_verdict(delivered, stored)
    if _is_number(delivered) and _is_number(stored):
        return DOUBLE if float(delivered) == float(stored) else CHANGED
    return LOST if stored is None else CHANGED


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _loss(delivered: Any) -> str:
    if delivered is None:
        return NULL_LOST
    if delivered == "":
        return EMPTY_TEXT_LOST
    if delivered == {}:
        return EMPTY_OBJECT_LOST
    is_all_null = isinstance(delivered, Mapping) and set(delivered.values()) == {None}
    return NULL_LOST if is_all_null else LOST


def _same(delivered: Any, stored: Any) -> bool:
    """Whether two JSON values are equal; true is not 1."""
    if isinstance(delivered, bool) or isinstance(stored, bool):
        return delivered is stored
    if isinstance(delivered, list) and isinstance(stored, list):
        return len(delivered) == len(stored) and all(map(_same, delivered, stored))
    if isinstance(delivered, Mapping) and isinstance(stored, Mapping):
        return delivered.keys() == stored.keys() and all(
            _same(each, stored[name]) for name, each in delivered.items()
        )
    return bool(delivered == stored)


def _text_verdict(delivered: Any, stored: str) -> str:
    if stored == str(delivered):
        return PYTHON_TEXT
    try:
        return JSON_TEXT if _same(delivered, exact(stored)) else CHANGED
    except json.JSONDecodeError:
        return CHANGED
