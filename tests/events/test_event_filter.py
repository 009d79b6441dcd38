"""Events are matched by the ids and e-mail addresses of actor and entity."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tap_audit_events.events.event_filter import EventFilter
from tests.builders import an_event

JANE = {"type": "user", "id": "Jane", "email": "Jane.Doe@Example.com"}


def matches(event: Any, *, actor: tuple[str, ...] = (), entity: tuple[str, ...] = ()) -> bool:
    text = event if isinstance(event, bytes) else json.dumps(event).encode()
    return list(EventFilter.of(actor, entity).positions([b"{}", text])) == [1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("Jane",), True),
        (("jane",), False),
        (("jane.doe@EXAMPLE.com",), True),
        (("nobody", "Jane"), True),
        (("Jane Doe", "user", "null"), False),
    ],
)
@pytest.mark.parametrize("part", ["actor", "entity"])
def test_ids_are_compared_exactly_and_addresses_in_any_case(
    part: str, values: tuple[str, ...], expected: bool
) -> None:
    assert matches(an_event() | {part: JANE}, **{part: values}) is expected


@pytest.mark.parametrize("entity", ["w-1", "w-2"])
@pytest.mark.parametrize("actor", ["user-1", "user-2"])
def test_actor_and_entity_must_both_match(actor: str, entity: str) -> None:
    expected = (actor, entity) == ("user-1", "w-1")
    assert matches(an_event(), actor=(actor,), entity=(entity,)) is expected


@pytest.mark.parametrize(
    "actor",
    [b"null", b'"5"', b"[]", b'{"id":5}', b'{"id":null}', b'{"id":["5"]}', b'{"id":{"5":5}}',
     b'{"id":1e999999999999999999999}', b'{"name":"5"}'],
)  # fmt: skip
def test_what_is_not_a_text_never_matches(actor: bytes) -> None:
    """Another field of such an actor can match."""
    assert not matches(b'{"actor":%b}' % actor, actor=("5", "null"))
    if b'"id"' in actor:
        assert matches(b'{"actor":%b,"email":"A@b"}}' % actor[:-1], actor=("a@B",))


@given(value=st.text(min_size=1), escapes=st.booleans())
def test_values_are_compared_as_decoded_texts(value: str, escapes: bool) -> None:
    """JSON may write the same text in several ways."""
    value = value.encode(errors="replace").decode()
    for field in ("id", "email"):
        event = {"entity": {field: value}}
        text = json.dumps(event, ensure_ascii=escapes).encode()
        assert matches(text, entity=(value,))
        assert not matches(text, entity=(value + "x",))
