"""A STATE of a thousand organizations is searched for secrets once, and shows none."""

import json
from typing import Any

import pytest
from singer_sdk.singerlib import StateMessage

from tap_audit_events.errors import redaction
from tap_audit_events.errors.redaction import register_secret
from tap_audit_events.output import STATE_INTERVAL_SECONDS
from tap_audit_events.sandbox import Service
from tap_audit_events.singer.messages import MessageWriter
from tests.conftest import Sync
from tests.errors.test_masking import TOKEN, fresh_redaction  # noqa: F401 - a fixture
from tests.singer.test_incremental import events


def a_state(count: int = 1000, **more: Any) -> dict[str, Any]:
    partitions = [
        {
            "context": {"organization_id": f"{n:08x}-0000-4000-8000-000000000000"},
            "replication_key_value": "2024-05-06T07:08:09Z",
            "watermark": [{"ids": [["2024-05-06T07:08:09Z", "QPieOVtmQi8"]]}],
        }
        for n in range(count)
    ]
    return {"bookmarks": {"audit_events": {"partitions": partitions} | more}}


def written(state: dict[str, Any]) -> dict[str, Any]:
    line = MessageWriter().serialize_message(StateMessage(state))
    value: dict[str, Any] = json.loads(line)["value"]
    return value


def test_a_state_without_a_secret_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is searched as a whole, not text by text."""
    register_secret(TOKEN)
    searched: list[int] = []
    found_in = redaction._secrets.found_in

    def counted(text: str) -> Any:
        searched.append(len(text))
        return found_in(text)

    monkeypatch.setattr(redaction._secrets, "found_in", counted)
    state = a_state()
    assert written(state) == state
    assert len(searched) == 1


@pytest.mark.parametrize("times", range(4))
def test_no_escape_hides_a_secret(times: int) -> None:
    """The secret may have been escaped before, as JSON, as JSON in JSON or by codes."""
    token = 'acme_pat_"quoted"\\and-more'
    register_secret(token)
    text = token
    for _ in range(min(times, 2)):
        text = json.dumps(text)[1:-1]
    if times == 3:
        text = "".join(f"\\\\u{ord(character):04x}" for character in token.replace("\\", ""))
        register_secret(token.replace("\\", ""))
    assert text not in json.dumps(written(a_state(note=text, other={text: 1})), ensure_ascii=False)
    assert "<access_token>" in json.dumps(written(a_state(note=text)))


def test_an_unchanged_state_is_not_due_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A STATE must be encoded to find that it is unchanged, which takes a while if it is large."""
    now = 0.0
    writer = MessageWriter(lambda: now)
    monkeypatch.setattr(writer, "_write", lambda *_, **__: None)
    writer.write_message(StateMessage(a_state()))
    now += STATE_INTERVAL_SECONDS
    assert writer.state_is_due
    writer.write_message(StateMessage(a_state()))
    assert not writer.state_is_due


@pytest.mark.parametrize(("size", "is_large"), [(5_000_000, False), (6_000_000, True)])
def test_a_state_that_meltano_may_refuse_is_warned_about_once(
    size: int, is_large: bool, service: Service, sync: Sync
) -> None:
    """Its limit for a line is half of a buffer, which has 10 MiB in some versions."""
    service.add(events("08:00:00", "08:00:01", "08:00:02"))
    state = {"bookmarks": {"of_another_stream": {"note": "x" * size}}}
    done = sync(state=state, page_size=1).raise_for_exit_code()
    assert len(done.states) > 1
    found = [each for each in done.warnings if "STATE line" in each]
    assert len(found) == is_large
    if found:
        assert found[0].startswith("A STATE line has 5.7 MiB: ")
        assert "elt.buffer_size" in found[0]
