"""Only a terminal shows a progress bar."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Service
from tests.conftest import Sync
from tests.reporting.test_log_lines import DAY, TEN_EVENTS, TRY_AGAIN


def watch(
    settings: dict[str, Any],
    folder: Path,
    *,
    columns: int = 80,
    stdout_too: bool = False,
    goes_at_once: bool = False,
    **environment: str,
) -> str:
    """Run the tap with a terminal as stderr, and return what it writes there.

    With `goes_at_once`, the terminal is closed before the run has ended.
    """
    (folder / "config.json").write_text(json.dumps(settings))
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    left_out = ("MELTANO_", "PYTHONUNBUFFERED")  # so that stderr is buffered, as for users
    kept = {name: text for name, text in os.environ.items() if not name.startswith(left_out)}
    with subprocess.Popen(
        [sys.executable, "-m", "tap_audit_events", "--config", "config.json"],
        env=kept | {"TERM": "xterm"} | environment,
        cwd=folder,
        stdout=slave if stdout_too else subprocess.DEVNULL,
        stderr=slave,
    ) as process:
        os.close(slave)
        written = b""
        while piece := read_terminal(master):
            written += piece
            if goes_at_once and b"%" in written:
                break
        os.close(master)
    assert process.returncode == 0, written
    return written.decode()


def read_terminal(master: int) -> bytes:
    try:
        return os.read(master, 1 << 16)
    except OSError:  # the process has ended, which closes the other side
        return b""


def screen(written: str) -> list[str]:
    """The lines that stay on a terminal; text before the last wipe of a line is gone."""
    return [line.rsplit("\r\x1b[K", 1)[-1] for line in written.split("\r\n")]


@pytest.fixture
def slow(service: Service, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a run that takes over a second, and logs a retry in the middle of it."""
    service.add(TEN_EVENTS)
    service.add_faults([TRY_AGAIN])
    return settings | DAY | {"page_size": 2, "concurrency": 1}


@pytest.mark.parametrize(
    "columns", [80, *(pytest.param(n, marks=pytest.mark.long) for n in (0, 40))]
)
def test_a_terminal_shows_a_bar_with_rate_position_and_remaining_time(
    columns: int, slow: dict[str, Any], tmp_path: Path
) -> None:
    """The bar fits into a line, log lines are above it as a whole, and it disappears at the end."""
    written = watch(slow, tmp_path, columns=columns)
    bars = re.findall(r"\[#*-*\]  +\d+%  [^\r\n\x1b]*", written)
    assert bars, written
    assert all(len(bar) < (columns or 80) for bar in bars)
    if columns != 40:
        assert re.fullmatch(
            r"\[#*-+\]  +\d+%  \d+ events  \d+/s  \d:\d\d:\d\d to go  2024-05-06 08:00", bars[-1]
        )
    log_line = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \| [A-Z]+ +\| \S+ +\| .+")
    assert all(map(log_line.fullmatch, screen(written)[:-1]))
    assert screen(written)[-1] == ""
    assert any("Retry 1 of 8 in " in line for line in screen(written))


@pytest.mark.parametrize(
    "where",
    [
        {"stdout_too": True},
        pytest.param({"TERM": "dumb"}, marks=pytest.mark.long),
        {"MELTANO_EXTRACTOR_NAME": "tap-audit-events"},
        pytest.param({"LOGLEVEL": "WARNING"}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_there_is_no_bar_if_nobody_would_see_it(
    where: dict[str, Any], slow: dict[str, Any], tmp_path: Path
) -> None:
    """The terminal cannot draw, also shows messages, or Meltano or the log level excludes a bar."""
    written = watch(slow, tmp_path, **where)
    assert "\x1b" not in written
    assert "Retry 1 of 8 in " in written


def test_a_terminal_that_is_closed_does_not_end_a_run(slow: dict[str, Any], tmp_path: Path) -> None:
    """The connection to a terminal may break; the run does not need the bar."""
    assert "%" in watch(slow, tmp_path, goes_at_once=True)


def test_there_is_no_bar_in_a_pipe(slow: dict[str, Any], sync: Sync) -> None:
    """A log file has only lines."""
    done = sync(**slow).raise_for_exit_code()
    assert not re.search(r"[\x1b\r]", done.log)
