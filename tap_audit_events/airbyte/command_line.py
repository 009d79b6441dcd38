"""The command line of the Airbyte source, its exit codes and signals."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from tap_audit_events.airbyte.commands import Commands
from tap_audit_events.airbyte.failures import trace_of, trace_of_defect
from tap_audit_events.airbyte.log_messages import set_up_logging
from tap_audit_events.airbyte.messages import AirbyteWriter
from tap_audit_events.airbyte.sync import milliseconds_at
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OutputError,
    SettingsError,
    sanitize,
)
from tap_audit_events.extraction.shutdown import ignore_signals
from tap_audit_events.run.runtime import Runtime


def run(arguments: Sequence[str], writer: AirbyteWriter) -> int:
    """Run a command; return its exit code.

    An error becomes a TRACE message; if stdout cannot be written to, a line on stderr.
    """
    runtime = Runtime()
    runtime.stop.handle_signals()
    try:
        return _run(arguments, writer, runtime)
    except OutputError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


def _run(arguments: Sequence[str], writer: AirbyteWriter, runtime: Runtime) -> int:
    try:
        logger = set_up_logging(writer)
        options = vars(_parser().parse_args(arguments))
        commands = Commands(writer, runtime, logger)
        getattr(commands, options.pop("command"))(**options)
        return 0
    except OutputError:
        raise
    except AuditEventsError as error:
        ignore_signals()
        writer.write(trace_of(error, milliseconds_at(runtime.now())))
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - nothing but messages may be written
        writer.write(trace_of_defect(error, milliseconds_at(runtime.now())))
        return 1


class _Parser(argparse.ArgumentParser):
    """An argument parser that raises errors of the source."""

    def error(self, message: str) -> NoReturn:
        """Raise `SettingsError` for a command line that cannot be used."""
        raise SettingsError([f"The command line cannot be used: {sanitize(message)}"])


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="source-audit-events",
        description="Airbyte source for the audit events of an organization.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("spec", help="describe the settings")
    check = commands.add_parser("check", help="test the settings, the token and the connection")
    discover = commands.add_parser("discover", help="describe the stream")
    read = commands.add_parser("read", help="write the events")
    for command in (check, discover, read):
        command.add_argument("--config", required=True, help="JSON file with the settings")
    read.add_argument("--catalog", required=True, help="JSON file with the configured catalog")
    read.add_argument("--state", help="JSON file with the state of the last run")
    return parser
