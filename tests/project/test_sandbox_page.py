"""The commands of `docs/sandbox.md` work as written, and do what the page says."""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.pipeline import borrow_plugins
from tests.project.pages import Section, sections, shell

PAGE = sections("sandbox.md")
ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
MOST_LINES = 40
"""More would flood a terminal."""


def run(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    done = shell(command, folder, ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def shown(section: Section) -> list[str]:
    """Return the lines of the section's output."""
    (text,) = re.findall(r"```text\n(.*?)```", section.text, re.DOTALL)
    return list(text.splitlines())


@pytest.mark.parametrize("command", PAGE["Run one command against it"].commands)
def test_a_command_finds_the_sandbox_and_does_not_flood_the_terminal(
    command: str, tmp_path: Path
) -> None:
    done = run(command, tmp_path)

    assert len((done.stdout + done.stderr).splitlines()) <= MOST_LINES
    written = [each for path in tmp_path.iterdir() for each in lines(path)]
    types = Counter(message["type"] for message in written)
    assert types["RECORD"] == (10_000 if written else 0)


def without_numbers(line: str) -> str:
    """Return a line up to the part that the page leaves out, without numbers."""
    return re.sub(r"[\d.]+", "#", line.partition("…")[0])


def test_the_log_shows_each_fault_and_that_everything_arrived(tmp_path: Path) -> None:
    """The page shows the lines of the log, in the order in which they may come."""
    (command,) = PAGE["Faults"].commands
    done = run(command, tmp_path)

    assert len((done.stdout + done.stderr).splitlines()) <= MOST_LINES
    log = re.sub(r"[\d.]+", "#", done.stderr)
    for line in shown(PAGE["Faults"]):
        assert without_numbers(line) in log
    assert "Done: 10000 events delivered" in done.stderr


def test_a_loop_loses_events_that_the_tap_delivers(tmp_path: Path) -> None:
    """The page and the README say how many, and that one event is there twice."""
    (tmp_path / "examples").symlink_to(Path(__file__).parents[2] / "examples")
    with_a_loop, with_the_tap = PAGE["An event that a loop loses"].commands
    assert run(with_a_loop, tmp_path).stdout.split() == ["998", "loop.jsonl"]
    assert run(with_the_tap, tmp_path).stdout.split() == ["1000", "tap.jsonl"]

    counts = {
        name: Counter(event["id"] for event in lines(tmp_path / name))
        for name in ("loop.jsonl", "tap.jsonl")
    }
    assert sorted(counts["loop.jsonl"].values()) == [1] * 996 + [2]
    assert set(counts["tap.jsonl"].values()) == {1}


@contextmanager
def serving(command: str, folder: Path) -> Iterator[dict[str, str]]:
    """Start the sandbox on a free port, and return what it prints."""
    free = command.split()
    free[free.index("--port") + 1] = "0"
    with subprocess.Popen(
        free, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield dict(process.stdout.readline().strip().split(": ") for _ in range(4))
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


def test_the_sandbox_that_keeps_running_is_used_like_the_service(tmp_path: Path) -> None:
    """Its first three lines are settings; `tail` prints events as long as it runs."""
    section = PAGE["Keep it running"]
    serve, check, tail = section.commands
    with serving(serve, tmp_path) as printed:
        expected = dict(line.split(": ") for line in shown(section))
        assert printed | {"base_url": ""} == expected | {"base_url": ""}
        settings = {name: printed[name] for name in list(printed)[:3]}
        (tmp_path / "config.json").write_text(json.dumps(settings))
        assert "The service accepts the access token" in run(check, tmp_path).stderr
        with subprocess.Popen(
            tail.split(),
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None
            newest = [json.loads(process.stdout.readline()) for _ in range(20)]
            process.terminate()
    assert len({event["id"] for event in newest}) == 20


@pytest.mark.long
@pytest.mark.meltano
def test_meltano_reads_the_sandbox(tmp_path: Path) -> None:
    borrow_plugins(tmp_path)
    (command,) = PAGE["With Meltano"].commands
    run(command, tmp_path)
    assert len(lines(tmp_path / "output" / "audit_events.jsonl")) == 10_000
