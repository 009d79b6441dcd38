"""The file of events that cannot be delivered."""

import json
import os
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.errors.exceptions import AuditEventsError
from tap_audit_events.run import quarantine
from tap_audit_events.run.quarantine import QuarantinedEvent, QuarantineFile

ORGANIZATION = "0b5e7f0c-53a4-4d2e-9b5a-1f2d3c4b5a69"


def an_event(text: bytes, **changes: Any) -> QuarantinedEvent:
    given = {"organization_id": ORGANIZATION, "code": "AE-EVENT", "reason": "no id"}
    return QuarantinedEvent(text=text, **{**given, **changes})


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines() if line]


def texts(path: Path) -> list[bytes]:
    return [
        each["event"].encode() if "event" in each else b64decode(each["event_base64"])
        for each in lines(path)
    ]


def test_a_line_says_what_when_where_and_why(tmp_path: Path) -> None:
    """A line has everything that is needed to find, judge and replay the event."""
    path = tmp_path / "quarantine.jsonl"
    QuarantineFile(path).add([an_event(b"{}", window="up to now", position=3)])
    (line,) = lines(path)
    found_at, digest = line.pop("found_at"), line.pop("digest")
    assert found_at.endswith("Z")
    assert len(digest) == 64
    assert line == {
        "organization_id": ORGANIZATION,
        "code": "AE-EVENT",
        "reason": "no id",
        "window": "up to now",
        "position": 3,
        "event": "{}",
    }
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text",
    [b'{"id": "\\ud800\\u0000", "n": 1.10}', b"\xff\xfe", b"\xed\xa0\x80", b'{"a":\n "b"}\\', b""],
)
def test_every_byte_of_the_event_is_kept(tmp_path: Path, text: bytes) -> None:
    """Also what is not JSON, or not UTF-8."""
    path = tmp_path / "quarantine.jsonl"
    QuarantineFile(path).add([an_event(text)])
    assert texts(path) == [text]


def test_an_event_is_appended_once(tmp_path: Path) -> None:
    """Also by a later run; the same text of another organization is another event."""
    path = tmp_path / "quarantine.jsonl"
    first = QuarantineFile(path)
    assert first.add([an_event(b"1"), an_event(b"1")]) == (1, 0)
    assert first.add([an_event(b"1")]) == (0, 0)
    again = QuarantineFile(path)
    other = an_event(b"1", organization_id="another")
    assert again.add([an_event(b"1", reason="another"), an_event(b"2"), other]) == (2, 1)
    assert again.add([an_event(b"1")]) == (0, 0)
    assert texts(path) == [b"1", b"2", b"1"]


def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest events are remembered; an older one may be appended again."""
    monkeypatch.setattr(quarantine, "MAX_DIGESTS", 2)
    path = tmp_path / "quarantine.jsonl"
    QuarantineFile(path).add([an_event(b"%d" % number) for number in range(3)])
    QuarantineFile(path).add([an_event(b"2"), an_event(b"1"), an_event(b"0")])
    assert texts(path) == [b"0", b"1", b"2", b"0"]


def test_half_a_line_is_not_continued(tmp_path: Path) -> None:
    """A process that was killed while it wrote has left an event that must be written again."""
    path = tmp_path / "quarantine.jsonl"
    QuarantineFile(path).add([an_event(b'{"a":"b"}')])
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        again = QuarantineFile(path)
        assert again.add([an_event(b'{"a":"b"}')]).appended == 1
        before, after = path.read_bytes().splitlines()
        assert before == whole[:cut].rstrip(b"\n")
        assert json.loads(after)["event"] == '{"a":"b"}'


def test_the_event_is_on_the_disk_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is flushed after its last line: a state that follows must not be ahead of it."""
    path = tmp_path / "quarantine.jsonl"
    flushed = []

    def fsync(descriptor: int) -> None:
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            flushed.append(path.read_bytes())

    monkeypatch.setattr(os, "fsync", fsync)
    QuarantineFile(path).add([an_event(b"1"), an_event(b"2")])
    assert flushed == [path.read_bytes()]


def test_a_file_that_cannot_be_used_is_noticed_at_once(tmp_path: Path) -> None:
    """No event has to come first."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "missing" / "file", tmp_path / "pipe", Path("a\0b")):
        with pytest.raises(AuditEventsError, match="AE-QUARANTINE: "):
            QuarantineFile(path)


def test_a_full_disk_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a line is an error, and the next run appends the event again."""
    path = tmp_path / "quarantine.jsonl"
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, line: write(file, line[:-9]))
        with pytest.raises(AuditEventsError, match=r"AE-QUARANTINE: .*full"):
            QuarantineFile(path).add([an_event(b"1")])
    assert QuarantineFile(path).add([an_event(b"1")]).appended == 1


def test_a_file_that_was_moved_away_is_created_again(tmp_path: Path) -> None:
    """As log rotation does; nothing is written into a file that nobody finds."""
    path = tmp_path / "quarantine.jsonl"
    file = QuarantineFile(path)
    file.add([an_event(b"1")])
    path.rename(tmp_path / "old.jsonl")
    file.add([an_event(b"1"), an_event(b"2")])
    assert texts(path) == [b"2"]
