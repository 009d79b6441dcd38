"""The commands of the Airbyte source: ``spec``, ``check``, ``discover`` and ``read``."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from tap_audit_events.airbyte.connection_specification import PROPERTIES, TOKEN_FILE, specification
from tap_audit_events.airbyte.failures import trace_of
from tap_audit_events.airbyte.messages import AirbyteWriter, set_up_logging
from tap_audit_events.airbyte.streams import (
    SyncMode,
    discovered_stream,
    stream_state_in,
    sync_mode_of,
)
from tap_audit_events.airbyte.sync import Sync, milliseconds_at
from tap_audit_events.config.input_files import read_any_json_file, read_json_file
from tap_audit_events.config.process import tune_memory
from tap_audit_events.config.settings import Settings, checked_settings
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OutputError,
    SettingsError,
    StoppedError,
    sanitize,
)
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.extraction.shutdown import ignore_signals
from tap_audit_events.reporting.connection_test import check_connection
from tap_audit_events.run.runtime import Runtime


def run(arguments: Sequence[str], writer: AirbyteWriter) -> int:
    """Run a command; return its exit code.

    An error becomes a TRACE message; if stdout cannot be written to, a line on stderr.
    """
    runtime = Runtime()
    runtime.stop.handle_signals()
    try:
        try:
            commands = Commands(writer, runtime, set_up_logging(writer))
            options = vars(_parser().parse_args(arguments))
            getattr(commands, options.pop("command"))(**options)
        except OutputError:
            raise
        except Exception as error:  # noqa: BLE001 - nothing but messages may be written
            ignore_signals()
            writer.write(trace_of(error, milliseconds_at(runtime.now())))
            return error.exit_code if isinstance(error, AuditEventsError) else 1
    except OutputError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


class Commands:
    """Runs the commands; they raise `AuditEventsError`."""

    def __init__(self, writer: AirbyteWriter, runtime: Runtime, logger: logging.Logger) -> None:
        self._writer = writer
        self._runtime = runtime
        self._logger = logger

    def spec(self) -> None:
        """Write the settings as a form."""
        self._writer.write({"type": "SPEC", "spec": specification()})

    def check(self, config: str) -> None:
        """Test settings, token and connection; write whether they work, unless it is stopped."""
        status = {"status": "SUCCEEDED"}
        try:
            check_connection(self._read_settings(config), self._runtime, self._logger)
        except StoppedError:
            raise
        except AuditEventsError as error:
            status = {"status": "FAILED", "message": str(error)}
        self._writer.write({"type": "CONNECTION_STATUS", "connectionStatus": status})

    def discover(self, config: str) -> None:
        """Write the catalog."""
        stream = discovered_stream(self._read_settings(config).record_shape)
        self._writer.write({"type": "CATALOG", "catalog": {"streams": [stream]}})

    def read(self, config: str, catalog: str, state: str | None = None) -> None:
        """Write records and STATE. If the run ends early, STATE covers what was written."""
        settings = self._read_settings(config)
        mode = sync_mode_of(read_json_file("catalog", catalog), settings.record_shape)
        if mode is None:
            self._logger.warning("The catalog does not have the stream %s: nothing is read", STREAM)
            return
        earlier: dict[str, Any] = {}
        if state is not None and mode == SyncMode.INCREMENTAL:
            earlier = stream_state_in(read_any_json_file("state", state))
        tune_memory()
        Sync(settings, self._writer, runtime=self._runtime, logger=self._logger).run(earlier)

    def _read_settings(self, path: str) -> Settings:
        config = read_json_file("config", path)
        _check_items(config.get("organizations"))
        # A form may leave an empty list if its last item is removed.
        given = {name: value for name, value in config.items() if value != []}
        return checked_settings(given, self._logger, known=PROPERTIES)


def _check_items(organizations: Any) -> None:
    """Check that no organization has an `access_token_file`, which the source does not read."""
    items = organizations if isinstance(organizations, list) else []
    problems = [
        f"organizations[{number}].{TOKEN_FILE} is not known: a source reads no files of its"
        " machine. Set access_token"
        for number, item in enumerate(items)
        if isinstance(item, dict) and item.get(TOKEN_FILE) is not None
    ]
    if problems:
        raise SettingsError(problems)


class _Parser(argparse.ArgumentParser):
    """An argument parser that raises errors of the source."""

    def error(self, message: str) -> NoReturn:
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
