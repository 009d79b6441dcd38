"""The command line of `audit-events`: help, version, settings and exit codes."""

import json
import os
import pty
import re
import subprocess
import sys
import termios

import pytest

from tap_audit_events.cli.command import audit_events
from tap_audit_events.outputs.formats import FORMATS
from tap_audit_events.sandbox import ACCESS_TOKEN, Fault, Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import history
from tests.forking import COMMAND
from tests.integrations.pipeline import PROJECT

SUBCOMMANDS = ("export", "count", "tail", "verify", "report")


def test_help_lists_each_subcommand_and_shows_an_example(command: Command) -> None:
    """The help of each subcommand has an example to copy, and fits into 80 columns."""
    done = command("--help").raise_for_exit_code()

    assert all(f"  {name} " in done.stdout.decode() for name in SUBCOMMANDS)
    for name in SUBCOMMANDS:
        text = command(name, "--help").raise_for_exit_code().stdout.decode()
        *continued, _ = re.findall(r"Example.*:\n\n((?: {6}.+\n)+)", text)[0].splitlines()
        assert all(line.endswith("\\") for line in continued)
        assert f"      audit-events {name} " in text
        assert text == command(name, "-h").stdout.decode()
        assert all(len(line) <= 80 for line in text.splitlines())


def test_the_help_and_the_page_of_export_list_each_format(command: Command) -> None:
    """A format is listed by the suffix that selects it."""
    text = command("export", "--help").raise_for_exit_code().stdout.decode()
    page = (PROJECT / "docs" / "export.md").read_text()

    assert {*FORMATS} <= {*re.findall(r"^ +(\S+)  ", text, re.MULTILINE)}
    assert {*FORMATS} <= {*re.findall(r"^\| `(\S+)`", page, re.MULTILINE)}


def test_each_option_is_on_a_page() -> None:
    """The short or the long form of an option is enough."""
    names = ("export.md", "proof.md", "ocsf.md")
    pages = "".join((PROJECT / "docs" / name).read_text() for name in names)
    words = {*re.split(r"[\s`]+", pages)}
    options = [each for name in SUBCOMMANDS for each in audit_events.commands[name].params]

    assert len(options) > len(SUBCOMMANDS)
    assert [each.name for each in options if not words & {*each.opts}] == []


def test_the_version_is_printed(command: Command) -> None:
    assert command("--version").raise_for_exit_code().stdout.startswith(b"audit-events, version ")


def test_the_singer_sdk_is_not_loaded() -> None:
    """Loading it takes most of a second. Libraries that only some runs need are not loaded."""
    code = (
        "import sys, tap_audit_events.cli.command as command\n"
        "print(sorted({'requests', 'pyarrow', 'duckdb', 'msgspec'} & sys.modules.keys()))\n"
        "from tap_audit_events.cli import count, export, tail\n"
        "print(sorted({'singer_sdk', 'pyarrow', 'duckdb'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert done.stdout == b"[]\n[]\n"


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [((), 2), (("count", "--by", "week"), 2)],
)
def test_a_wrong_command_line_shows_the_usage(
    arguments: tuple[str, ...], exit_code: int, command: Command
) -> None:
    done = command(*arguments)

    assert done.exit_code == exit_code
    assert "Usage: audit-events" in done.log + done.stdout.decode()


# Settings


def test_a_file_overrides_the_environment(service: Service, command: Command) -> None:
    """A token file replaces the token of the environment, and the last file wins.

    The files may be readable by others, which is a warning.
    """
    service.add(history(10))
    (command.folder / "token").write_text(ACCESS_TOKEN)
    (command.folder / "token").chmod(0o644)
    files = [{"access_token_file": "token", "start_date": "x"}, {"start_date": None}]
    for name, document in zip("ab", files, strict=True):
        (command.folder / name).write_text(json.dumps(document))

    done = command("tail", "--config", "a", "--config", "b", TAP_AUDIT_EVENTS_ACCESS_TOKEN="wrong")

    assert done.exit_code == 0, done.log
    assert len(done.lines) == 10
    (readable,) = done.warnings
    assert "chmod 600" in readable


def test_settings_of_the_tap_alone_are_warned_about(service: Service, command: Command) -> None:
    """Without the warning, users might believe that their stream maps mask values here."""
    config = {"stream_maps": {"audit_events": {"actor": "__NULL__"}}, "page_size": 5}
    (command.folder / "a").write_text(json.dumps(config))

    done = command("tail", "--config", "a").raise_for_exit_code()

    assert done.warnings == [
        "Warning: stream_maps shapes the records of the tap and is ignored here"
    ]


@pytest.mark.parametrize(
    "subcommand",
    [["tail"], ["count", "--by", "day"], ["export", "--to", "a.jsonl"],
     ["verify", "--against", "loaded.jsonl"]],
)  # fmt: skip
def test_a_date_alone_is_the_whole_day_in_utc(
    subcommand: list[str], service: Service, command: Command
) -> None:
    """The start is its midnight; the end holds every event of the day, at any precision."""
    times = [
        *("2024-05-05T23:59:59.9999999Z", "2024-05-06T00:00:00Z"),
        *("2024-05-06T23:59:59.9999999Z", "2024-05-07T00:00:00Z"),
    ]
    events = [an_event(id=time, at=time) for time in times]
    service.add(events)
    (command.folder / "loaded.jsonl").write_text("\n".join(map(json.dumps, events)))

    done = command(*subcommand, "--start", "2024-05-06", "--end", "2024-05-06")

    shown = done.raise_for_exit_code().stdout.decode()
    if subcommand[0] == "export":
        shown = (command.folder / "a.jsonl").read_text()
    if subcommand[0] in {"tail", "export"}:
        assert [json.loads(line)["id"] for line in shown.splitlines()] == times[1:3]
    else:
        assert "2024-05-06" in shown
        assert not {"2024-05-05", "2024-05-07"} & {*re.findall(r"[-0-9]{10}", shown)}
        assert "2" in shown.split()


def test_a_start_in_the_future_is_warned_about(command: Command) -> None:
    """Such a range has no events; the year may be mistyped."""
    done = command("tail", "--start", "9000-01-01T00:00:00Z").raise_for_exit_code()

    assert done.warnings == [
        "Warning: Nothing to read yet: --start or start_date lies in the future"
    ]


@pytest.mark.parametrize(
    ("arguments", "environment", "error"),
    [
        (["--start", "yesterday"], {}, "AE-SETTINGS: --start is not an RFC 3339 date-time"),
        (
            ["--end", "2026-01-01T00:00:00Z"],
            {"TAP_AUDIT_EVENTS_START_DATE": "2026-01-02T00:00:00Z"},
            "AE-SETTINGS: --end or end_date is before --start or start_date",
        ),
        (
            ["--config", "missing.json"],
            {},
            "AE-FILE: The config file 'missing.json' cannot be read",
        ),
        ([], {"TAP_AUDIT_EVENTS_PAGE_SIZE": "5000"}, "AE-SETTINGS: page_size "),
        (
            [],
            {"TAP_AUDIT_EVENTS_LOGLEVEL": "LOUD"},
            "AE-SETTINGS: TAP_AUDIT_EVENTS_LOGLEVEL is not",
        ),
    ],
)
def test_a_wrong_setting_is_reported_in_one_line(
    arguments: list[str],
    environment: dict[str, str],
    error: str,
    command: Command,
) -> None:
    done = command("export", "--to", "a.jsonl", *arguments, **environment)

    assert done.exit_code == 1
    assert done.error.startswith(error)
    assert done.log.count("\n") == 1


# The terminal


def test_a_bar_shows_the_progress_of_an_export(service: Service, command: Command) -> None:
    """The bar has the rate and the remaining time. Log lines are above it; the last line stays."""
    events = history(3000)
    service.add(events)
    service.add_faults([Fault.parse("status:code=503@100")])
    settings = {"page_size": 20, "end_date": events[-1]["occurredAt"]}
    (command.folder / "c.json").write_text(json.dumps(settings))
    shown, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    variables = command.variables(TERM="xterm")
    with open(shown, "rb", buffering=0) as screen:  # noqa: PTH123 - a descriptor
        process = subprocess.Popen(
            [sys.executable, "-m", COMMAND, "export", "--to", "a.jsonl", "--config", "c.json"],
            env=variables,
            cwd=command.folder,
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
        )
        os.close(terminal)
        text = _all(screen)
        assert process.wait(60) == 0

    # If the range ended now, the events would be less than a tenth of it.
    assert max(map(int, re.findall(r"([0-9]+)%", text))) > 10
    assert "/s" in text
    assert " to go" in text
    assert "\x1b[KWarning: Retry 1 of 8" in text
    assert text.rstrip().split("\x1b[K")[-1].startswith("Exported to a.jsonl: 3,000 events in ")


def _all(screen: object) -> str:
    """Everything that is shown until the terminal is closed."""
    text = b""
    while True:
        try:
            more = screen.read(65536)  # type: ignore[attr-defined]
        except OSError:  # Linux reports in this way that the other side is closed
            more = b""
        if not more:
            return text.decode()
        text += more


@pytest.mark.parametrize("arguments", [["tail", "-n", "1000"], ["count", "--by", "day"]])
@pytest.mark.parametrize("buffering", [{}, {"PYTHONUNBUFFERED": "1"}])
def test_a_file_without_room_for_the_whole_output_is_reported_in_one_line(
    buffering: dict[str, str], arguments: list[str], service: Service, command: Command
) -> None:
    """Without Python's buffer, a write stores the part that fits, without an error."""
    service.add([an_event(id=f"{n}", at=f"{1800 + n}-05-06T07:08:09Z") for n in range(200)])
    command.environment.update(buffering)
    small = ["bash", "-c", 'ulimit -f 1; exec "$@" > out', "bash"]

    done = command.under(small, *arguments)

    assert done.exit_code == 1
    assert done.error.startswith("AE-EXPORT: The output cannot be written: stdout: File too large")


def test_a_closed_stderr_does_not_stop_an_export(service: Service, command: Command) -> None:
    """What a C library writes to stderr must not get into a file or a connection."""
    service.add(history(10))
    command.environment["ARROW_DEFAULT_MEMORY_POOL"] = "unknown"  # Arrow writes a line to stderr
    closed = ["bash", "-c", 'exec "$@" 2>&-', "bash"]

    command.under(closed, "export", "--to", "days/").raise_for_exit_code()

    command("verify", "--against", "days").raise_for_exit_code()
