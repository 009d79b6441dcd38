"""The four commands of an Airbyte source: ``spec``, ``check``, ``discover`` and ``read``."""

from __future__ import annotations

from logging import Logger
from typing import Any

from tap_audit_events.airbyte.catalog import SyncMode, discovered_stream, sync_mode_of
from tap_audit_events.airbyte.connection_specification import (
    PROPERTIES,
    TOKEN_FILE,
    specification,
)
from tap_audit_events.airbyte.messages import AirbyteWriter
from tap_audit_events.airbyte.state import stream_state_in
from tap_audit_events.airbyte.sync import Sync
from tap_audit_events.config.input_files import read_any_json_file, read_json_file
from tap_audit_events.config.process import tune_memory
from tap_audit_events.config.settings import Settings, checked_settings
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    SettingsError,
    StoppedError,
)
from tap_audit_events.events.stream_names import STREAM
from tap_audit_events.reporting.connection_test import check_connection
from tap_audit_events.run.runtime import Runtime


class Commands:
    """Runs the commands."""

    def __init__(self, writer: AirbyteWriter, runtime: Runtime, logger: Logger) -> None:
        self._writer = writer
        self._runtime = runtime
        self._logger = logger

    def spec(self) -> None:
        """Write the settings as a form."""
        self._writer.write({"type": "SPEC", "spec": specification()})

    def check(self, config: str) -> None:
        """Test settings, token and connection, and write whether they work.

        Raises:
            StoppedError: a signal asked the test to stop.
            OutputError: stdout cannot be written to.
        """
        status = {"status": "SUCCEEDED"}
        try:
            check_connection(self._read_settings(config), self._runtime, self._logger)
        except StoppedError:
            raise
        except AuditEventsError as error:
            status = {"status": "FAILED", "message": str(error)}
        self._writer.write({"type": "CONNECTION_STATUS", "connectionStatus": status})

    def discover(self, config: str) -> None:
        """Write the catalog.

        Raises:
            SettingsError: the settings cannot be used.
            OutputError: stdout cannot be written to.
        """
        stream = discovered_stream(self._read_settings(config).record_shape)
        self._writer.write({"type": "CATALOG", "catalog": {"streams": [stream]}})

    def read(self, config: str, catalog: str, state: str | None = None) -> None:
        """Write records and STATE.

        Raises:
            SettingsError: the settings, the catalog or the state cannot be used.
            AuditEventsError: the run ended early; STATE covers what was written.
        """
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
