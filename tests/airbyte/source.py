"""Runs the Airbyte source as its clients do: by a command that writes messages to stdout."""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forking import ForkedTap
from tests.running import CODED, TIMEOUT_SECONDS, Run, _tokens, _written

MODULE = "tap_audit_events.airbyte"
STREAM = {
    "name": "audit_events",
    "json_schema": {"type": "object", "properties": {}},
    "supported_sync_modes": ["full_refresh", "incremental"],
}


@dataclass(frozen=True)
class Output(Run):
    """The messages, stderr and exit code of a run."""

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """The content of each message of a type, which is under the type's own name."""
        name = "connectionStatus" if kind == "CONNECTION_STATUS" else kind.lower()
        return [message[name] for message in self.messages if message["type"] == kind]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [record["data"] for record in self.of_type("RECORD")]

    @property
    def states(self) -> list[dict[str, Any]]:
        return self.of_type("STATE")

    @property
    def state(self) -> dict[str, Any]:
        """The last state; a list with it is what Airbyte passes to the next run."""
        return self.states[-1]

    @property
    def bookmark(self) -> str:
        return str(self.state["stream"]["stream_state"]["bookmark"])

    @property
    def statuses(self) -> list[str]:
        """The statuses of the stream, in the order of the messages."""
        traces = self.of_type("TRACE")
        return [each["stream_status"]["status"] for each in traces if "stream_status" in each]

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The errors in TRACE messages; each begins with a code."""
        found = [each["error"] for each in self.of_type("TRACE") if "error" in each]
        assert all(CODED.match(error["message"]) for error in found), found
        return found

    @property
    def infos(self) -> list[str]:
        return [each["message"] for each in self.of_type("LOG") if each["level"] == "INFO"]

    @property
    def warnings(self) -> list[str]:
        return [each["message"] for each in self.of_type("LOG") if each["level"] == "WARN"]

    def check_states(self) -> None:
        """Check that each STATE counts the records before it, and that no record is without one."""
        kinds = {"RECORD": "r", "STATE": ","}
        written = "".join(kinds.get(message["type"], "") for message in self.messages)
        *counted, after = map(len, written.split(","))
        assert after == 0
        assert counted == [state["sourceStats"]["recordCount"] for state in self.states]
        if self.records:
            assert self.bookmark == self.records[-1]["occurredAt"]


def a_catalog(sync_mode: str = "incremental", **more: Any) -> dict[str, Any]:
    """A configured catalog with the stream `audit_events`."""
    configured = {"stream": STREAM, "sync_mode": sync_mode, "destination_sync_mode": "append"}
    return {"streams": [configured | more]}


def run_source(
    command: str,
    settings: Mapping[str, Any] | str | None = None,
    *arguments: str,
    catalog: object = None,
    state: object = None,
    environment: Mapping[str, str] | None = None,
) -> Output:
    """Run a command to its end. A string is written to its file as it is, other values as JSON.

    Without a catalog, ``read`` gets one that asks for an incremental sync.
    """
    if command == "read" and catalog is None:
        catalog = a_catalog()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = _written(folder, {"--config": settings, "--catalog": catalog, "--state": state})
        out, log = folder / "stdout", folder / "stderr"
        with out.open("wb") as stdout, log.open("wb") as stderr:
            source = ForkedTap(
                [command, *files, *arguments],
                environment={**os.environ, "HOME": name, **(environment or {})},
                folder=folder,
                streams=(stdout.fileno(), stderr.fileno()),
                module=MODULE,
            )
        try:
            exit_code = source.wait(TIMEOUT_SECONDS)
        finally:
            source.kill()
        done = Output(out.read_bytes(), log.read_text("utf-8"), exit_code)
        done.check_discreet(_tokens(settings or {}, {}))
    assert done.log == ""
    assert done.stdout.endswith(b"\n")
    assert exit_code == 0 or json.loads(done.stdout.split(b"\n")[-2])["trace"]["type"] == "ERROR"
    return done
