"""Events whose fields have values of any type, and unknown fields."""

from typing import Any

from hypothesis import strategies as st

from tap_audit_events.api.columns import COLUMNS

PARTS = ("action", "actor", "context", "scope", "entity")

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False).map(float)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
UNKNOWN = st.dictionaries(TEXTS, VALUES, max_size=2)


def part(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """A part of an event: some of its fields, with values of any type, and unknown fields."""
    names = [path[1] for path in COLUMNS.values() if len(path) > 1 and path[0] == name]
    known = st.fixed_dictionaries({}, optional=dict.fromkeys(names, TEXTS | VALUES))
    return st.builds(lambda unknown, fields: unknown | fields, UNKNOWN, known)


EVENTS = st.builds(
    lambda unknown, parts: unknown | parts | {"id": "1", "occurredAt": "2024-05-06T07:08:09.5Z"},
    UNKNOWN,
    st.fixed_dictionaries({}, optional={name: part(name) | VALUES for name in PARTS}),
)
