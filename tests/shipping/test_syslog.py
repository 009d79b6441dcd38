"""The recipe of `docs/siem.md` for syslog: rsyslog stores each event as the service sent it."""

import json
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import HOSTILE, history
from tests.project.pages import sections

RSYSLOG: Final = shutil.which("rsyslogd", path="/usr/sbin:/usr/local/sbin")
LARGE: Final = an_event(id="large", at="2024-05-08T00:00:00Z", text="é\x7f" * 10_000)
STORED: Final = """
template(name="message" type="list") {{ property(name="msg") constant(value="\\n") }}
action(type="omfile" file="{file}" template="message")
"""

pytestmark = [
    pytest.mark.integrations,
    pytest.mark.skipif(not RSYSLOG, reason="rsyslog is not installed"),
    pytest.mark.skipif(not shutil.which("logger"), reason="logger is not installed"),
]


def code(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", sections("siem.md")["Syslog"].text, re.DOTALL)
    assert found
    return found[1]


@contextmanager
def rsyslog(folder: Path, file: Path) -> Iterator[int]:
    """Start it with the configuration of the page, and yield its port; at the end, stop it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    inputs = code("text").replace('port="601"', f'port="{port}" address="127.0.0.1"')
    configuration = folder / "rsyslog.conf"
    configuration.write_text(inputs + STORED.format(file=file))
    arguments = ["-n", "-f", str(configuration), "-i", str(folder / "pid")]
    with subprocess.Popen([RSYSLOG or "", *arguments]) as process:
        try:
            deadline = time.monotonic() + 60
            while process.poll() is None:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
            yield port
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_rsyslog_stores_each_event_unchanged(
    service: Service, command: Command, tmp_path: Path
) -> None:
    events = [*HOSTILE, LARGE, *history(100, start=200)]
    service.add(events)
    file = tmp_path / "stored.log"
    with rsyslog(tmp_path, file) as port:
        lines = command("tail", "-n", "1000").raise_for_exit_code().stdout
        (sender,) = re.findall(r"\| (logger .*)", code("console"))
        sender = sender.replace("logs.example.com", "127.0.0.1").replace("601", str(port))
        subprocess.run(sender.split(), input=lines, check=True, timeout=60)
        deadline = time.monotonic() + 60
        while not file.exists() or file.stat().st_size < len(lines):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    stored = file.read_bytes().splitlines()
    assert [line.strip() for line in stored] == lines.splitlines()
    assert {json.loads(line)["id"] for line in stored} == {event["id"] for event in events}
