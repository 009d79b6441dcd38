"""Any input from outside is read, or leads to a documented error.

The targets say what must hold. The corpus keeps inputs that once made a reader fail.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import ORGANIZATION_ID, an_event
from tests.fuzzing.checks import GOOD, TOKEN
from tests.fuzzing.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
KEPT = sorted(CORPUS.glob("*/*"))
TIME = "2026-01-31T08:00:00.50+01:00"
A_BOOKMARK = {
    "replication_key": "occurredAt",
    "replication_key_value": TIME,
    "watermark": [
        {
            "version": 1,
            "bookmark": TIME,
            "organization_id": ORGANIZATION_ID,
            "action_types": ["x"],
            "exclude_action_types": ["y"],
            "ids": ["a", "b"],
            "ids_from": TIME,
            "ids_until": TIME,
        }
    ],
}
A_STREAM = {
    "tap_stream_id": "audit_events",
    "schema": {"type": ["object"], "properties": {"id": {"type": "string"}}},
    "metadata": [{"breadcrumb": [], "metadata": {"replication-method": "FULL_TABLE"}}],
}
EVERY_SETTING = GOOD | {
    "start_date": TIME,
    "end_date": TIME,
    "action_types": ["x", "é&/#?"],
    "exclude_action_types": ["y"],
    "page_size": 7,
    "lookback_seconds": 60,
    "request_timeout_seconds": 0.5,
    "user_agent": "acme/1.0",
    "cursor": "a/=&+",
}
WHOLE: dict[str, Any] = {
    "settings": EVERY_SETTING,
    "state": {"bookmarks": {"audit_events": A_BOOKMARK}},
    "catalog": {"streams": [A_STREAM]},
    "error_bodies": {"errCode": "x", "msg": TOKEN, "vars": {"a": None}},
    "pages": {"auditEvents": [an_event(), an_event("event-2", at=TIME)], "nextCursor": "x"},
}
"""For each target of JSON, an input that it accepts; tests change parts of it."""

LINES = [
    "HTTP/1.1 200 OK",
    "HTTP/1.1 429 Too Many Requests",
    "Retry-After: 1000",
    "Content-Length: 2",
    "Content-Encoding: gzip",
    "Transfer-Encoding: chunked",
    "Set-Cookie: a=b",
    f'{{"errCode": "x", "msg": "{TOKEN}", "vars": null}}',
    "",
]
"""Lines of responses; tests put them in any order."""

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=10)
    | st.sampled_from([TIME, TOKEN, "\ud800", "\0", "\x1b[31m", 10**400]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def changed(draw: st.DrawFn, whole: Any) -> Any:
    """The same JSON with a part of it replaced, left out or added."""
    if not isinstance(whole, dict | list) or not whole or draw(st.integers(0, 9)) == 0:
        return draw(values)
    if isinstance(whole, list):
        place: Any = draw(st.integers(0, len(whole) - 1))
        rest: Any = list(whole)
    else:
        place = draw(st.sampled_from([*whole, "more"]))
        rest = dict(whole)
    if place == "more":
        return rest | {draw(st.text(max_size=8)): draw(values)}
    if draw(st.booleans()):
        rest[place] = draw(changed(rest[place]))
    else:
        del rest[place]
    return rest


@st.composite
def inputs(draw: st.DrawFn, name: str) -> bytes:
    """An input of a target: well-formed but for a few changes, perhaps cut or with other bytes."""
    if name in WHOLE:
        text = json.dumps(draw(changed(WHOLE[name])), ensure_ascii=draw(st.booleans()))
    else:
        text = "\r\n".join(draw(st.lists(st.sampled_from(LINES) | st.text(max_size=8), max_size=6)))
    data = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=6)) + data[at + draw(st.integers(0, 6)) :]
    return data


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name[:20]}")
def test_every_input_of_the_corpus_is_read_or_refused(path: Path) -> None:
    """Each input once made a reader fail, or reaches code that the others do not reach."""
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.hypothesis
@pytest.mark.parametrize("name", TARGETS)
def test_any_input_is_read_or_refused(name: str) -> None:
    """The inputs are the same in each run, so that a failure can be reproduced."""
    read: Callable[[bytes], bool | None] = TARGETS[name]

    @settings(derandomize=True, database=None)
    @given(inputs(name))
    def check(data: bytes) -> None:
        read(data)

    check()


@pytest.mark.parametrize("name", ["settings", "state", "catalog", "pages"])
def test_a_target_accepts_a_well_formed_input(name: str) -> None:
    """The drawn inputs are changes of this one, so some of them get past the first checks."""
    assert TARGETS[name](json.dumps(WHOLE[name]).encode())
