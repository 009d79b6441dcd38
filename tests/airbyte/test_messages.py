"""The writer keeps the messages of several threads whole, and counts the records for STATE."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

from tap_audit_events.airbyte.messages import AirbyteWriter, log
from tap_audit_events.errors.exceptions import OutputError

RECORD = json.dumps({"id": "event-1", "text": "x" * 2000}).encode()


@pytest.fixture
def stdout(tmp_path: Path) -> Iterator[TextIO]:
    with (tmp_path / "stdout").open("w") as file:
        yield file


def messages(stdout: TextIO) -> list[dict[str, Any]]:
    text = Path(stdout.name).read_text()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def test_messages_of_several_threads_stay_whole(stdout: TextIO) -> None:
    """A worker may log a retry while the main thread writes a page."""
    writer = AirbyteWriter(stdout)
    is_over = threading.Event()

    def log_on_and_on() -> None:
        while not is_over.is_set():
            writer.write(log("INFO", "retry"))

    thread = threading.Thread(target=log_on_and_on)
    thread.start()
    try:
        for milliseconds in range(500):
            writer.write_records([RECORD] * 3, milliseconds)
    finally:
        is_over.set()
        thread.join()
    writer.write_state({})
    found = [message["type"] for message in messages(stdout)]
    assert found.count("RECORD") == 1500
    assert "LOG" in found


def test_a_message_after_an_error_raises_the_error_again() -> None:
    """Otherwise, a run could continue after it failed to write a LOG message."""
    with Path("/dev/full").open("w") as full:
        writer = AirbyteWriter(full)
        for _ in range(2):
            with pytest.raises(OutputError):
                writer.write(log("INFO", "x"))
