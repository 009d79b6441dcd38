"""Tenzir as a receiver: a process that writes what arrives into files of JSON Lines."""

import json
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Final, Self

from tests.examples.environments import python_of

TOKEN: Final = "the-token-of-the-collector"

LINES: Final = 'accept_http "127.0.0.1:{port}" {{ read_lines }}\nto_file "{file}" {{ write_lines }}'
SPLUNK: Final = (
    f'accept_splunk "127.0.0.1:{{port}}", hec_token="{TOKEN}"\n'
    'to_file "{file}" {{ write_ndjson }}'
)
BULK: Final = (
    'accept_opensearch "127.0.0.1:{port}", keep_actions=true\nto_file "{file}" {{ write_ndjson }}'
)
LOGS: Final = (
    'accept_otlp "127.0.0.1:{port}", transport="http"\nto_file "{file}" {{ write_ndjson }}'
)
_SECONDS: Final = 60


class Tenzir:
    """A pipeline that listens on a free port while its `with` block runs.

    What it has accepted is in its files after `stop`. If it is killed instead, it loses what it has
    accepted but not yet written.
    """

    def __init__(self, folder: Path, pipeline: str) -> None:
        self._folder, self._pipeline = folder, pipeline
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]

    def start(self) -> None:
        """Listen on the same port as before, and write to a file of its own."""
        self._starts += 1
        tenzir = python_of("tenzir").with_name("tenzir")
        file = self._folder / f"arrived-{self._starts}.jsonl"
        pipeline = self._pipeline.format(port=self.port, file=file)
        with (self._folder / f"log-{self._starts}").open("wb") as log:
            self._process = subprocess.Popen(
                [tenzir, "--bare-mode", pipeline], cwd=self._folder, stdout=log, stderr=log
            )
        deadline = time.monotonic() + _SECONDS
        while not self._listens():
            assert self._process.poll() is None, self.log
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def stop(self) -> None:
        """End it as its service manager does: it writes what it has accepted.

        Its exit code says nothing: it is 1 after a client was killed in the middle of a request.
        """
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_SECONDS)
            finally:
                self._process.kill()
                self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    @property
    def lines(self) -> list[bytes]:
        """The lines of all files."""
        files = [self._folder / f"arrived-{start + 1}.jsonl" for start in range(self._starts)]
        return [line for file in files if file.exists() for line in file.read_bytes().splitlines()]

    @property
    def ids(self) -> list[str]:
        """The ids of the events, in order of arrival, and as often as they came."""
        found = [json.loads(line) for line in self.lines]
        return [_id(each) for each in found if "create" not in each]

    @property
    def log(self) -> str:
        return (self._folder / f"log-{self._starts}").read_text()

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def _id(arrived: Any) -> str:
    """The id of an event, inside what its protocol puts around it."""
    if "attributes" in arrived:
        uid: str = arrived["attributes"][0]["value"]["string_value"]
        return uid.rpartition("/")[2]
    event_id: str = arrived.get("event", arrived)["id"]
    return event_id
