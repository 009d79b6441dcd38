"""The tap: settings, discovery, command line, exit codes.

What only a run needs is imported by it, so that `--version` and `--about` take no longer than the
SDK does.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click
from singer_sdk import Tap
from singer_sdk.configuration._dict_config import parse_environment_config
from singer_sdk.exceptions import ConfigurationError, MappingError
from singer_sdk.helpers._classproperty import classproperty
from singer_sdk.helpers.capabilities import CapabilitiesEnum, PluginCapabilities, TapCapabilities
from singer_sdk.plugin_base import (
    JSONSchemaValidator,
    PluginBase,
    SingerCommand,
    _ConfigInput,
)
from singer_sdk.tap_base import CliTestOptionValue

from tap_audit_events import STREAM
from tap_audit_events.config.catalog_shape import check_catalog
from tap_audit_events.config.environment import parse_settings, unknown_settings
from tap_audit_events.config.input_files import read_json_file
from tap_audit_events.config.schema import ENVIRONMENT_PREFIX, PACKAGE, SETTINGS_SCHEMA
from tap_audit_events.config.settings import (
    Settings,
    read_settings,
    register_secrets,
    settings_warnings,
    token_warnings,
)
from tap_audit_events.config.state_shape import check_state, state_warnings
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    SettingsError,
    StoppedError,
    sanitize,
)
from tap_audit_events.errors.redacted_output import redact_logs
from tap_audit_events.errors.redaction import register_secret

if TYPE_CHECKING:
    from types import TracebackType

    from jsonschema import ValidationError

    from tap_audit_events.runtime import Runtime
    from tap_audit_events.singer.messages import MessageWriter
    from tap_audit_events.singer.stream import AuditEventsStream

_TEST_HELP = (
    "Say what holds of the settings, the token and the service; no record is written."
    " --test=schema writes the schema without asking the service."
)


class TapAuditEvents(Tap):
    """Singer tap for the audit events of an organization: who did what, when and where."""

    name = PACKAGE
    message_writer: MessageWriter
    config_jsonschema: ClassVar[dict[str, Any]] = SETTINGS_SCHEMA
    capabilities: ClassVar[list[CapabilitiesEnum]] = [
        TapCapabilities.CATALOG,
        TapCapabilities.STATE,
        TapCapabilities.DISCOVER,
        PluginCapabilities.ABOUT,
        PluginCapabilities.STREAM_MAPS,
        PluginCapabilities.FLATTENING,
        PluginCapabilities.STRUCTURED_LOGGING,
    ]

    settings: Settings
    """The checked settings; absent in discovery, which needs none."""

    def __init__(self, *args: Any, runtime: Runtime | None = None, **kwargs: Any) -> None:
        from tap_audit_events.runtime import Runtime
        from tap_audit_events.singer.messages import MessageWriter

        redact_logs()
        self.runtime = runtime or Runtime()
        super().__init__(*args, **{"message_writer": MessageWriter(), **kwargs})

    def discover_streams(self) -> Sequence[AuditEventsStream]:
        """The one stream."""
        from tap_audit_events.singer.stream import AuditEventsStream

        return [
            AuditEventsStream(
                self,
                runtime=self.runtime,
                writer=self.message_writer,
                settings=lambda: self.settings,
            )
        ]

    def load_state(self, state: dict[str, Any]) -> None:
        """Take the bookmarks of earlier runs.

        Raises:
            SettingsError: it is no Singer state.
        """
        check_state(state)
        for warning in state_warnings(state):
            self.logger.warning("%s", warning)
        super().load_state(state)

    def _validate_config(self, *, raise_errors: bool = True) -> list[str]:
        """Read the settings once; nothing is checked where `raise_errors` is off, in discovery.

        Raises:
            SettingsError: with one line for each setting to mend.
        """
        register_secrets(self.config)
        if not raise_errors:
            return []
        sdk_schema = self._sdk_settings()
        for warning in settings_warnings(
            self.config, [*Settings.__slots__, *sdk_schema["properties"]]
        ):
            self.logger.warning("%s", warning)
        self.settings = read_settings(self.config)
        register_secret(self.settings.access_token)
        for warning in token_warnings(self.settings):
            self.logger.warning("%s", warning)
        errors = JSONSchemaValidator(sdk_schema).iter_errors(self._config)
        if problems := [f"{_path(error)}: {sanitize(error.message)}" for error in errors]:
            raise SettingsError(problems)
        return []

    def _handle_termination(self, signum: int, frame: object) -> None:
        """Ask the run to stop; a second signal ends the process at once."""
        del frame
        if self.runtime.stop.signal_number is not None:
            os._exit(128 + signum)
        self.runtime.stop.request(signum)

    @classmethod
    def _sdk_settings(cls) -> dict[str, Any]:
        """The schema of the settings that the SDK brings: stream maps and flattening."""
        schema: dict[str, Any] = {}
        cls.append_builtin_config(schema)
        return schema

    @classproperty
    def _env_var_config(cls) -> dict[str, Any]:  # noqa: N805 - a property of the class
        """Settings from the environment; the SDK's own reader fails on a number that is none."""
        properties = {**cls._sdk_settings()["properties"], **SETTINGS_SCHEMA["properties"]}
        texts = {"properties": {name: {"type": "string"} for name in properties}}
        given = parse_environment_config(texts, ENVIRONMENT_PREFIX)
        unknown = unknown_settings(os.environ, properties)
        return parse_settings(given, properties) | dict.fromkeys(unknown)

    # Command line

    @classmethod
    def get_singer_command(cls) -> click.Command:
        """The SDK's command, with errors of one line instead of tracebacks."""
        command = super().get_singer_command()
        for parameter in command.params:
            if parameter.name in {"catalog", "state"}:
                parameter.type = click.STRING  # read by `invoke`, which says what is wrong
            if parameter.name == "test" and isinstance(parameter, click.Option):
                parameter.help = _TEST_HELP
        return _Command(
            name=command.name,
            help=command.help,
            params=command.params,
            callback=command.callback,
            context_settings=command.context_settings,
            logger=cls.logger,
        )

    @classmethod
    def cb_config(
        cls, ctx: click.Context, param: click.Option, value: tuple[str, ...]
    ) -> _ConfigInput:
        """Read and merge the files of ``--config``; ``ENV`` stands for the environment."""
        del ctx, param
        config: dict[str, Any] = {}
        for path in value:
            if path != "ENV":
                config |= read_json_file("config", path)
        return _ConfigInput(config=config, parse_env="ENV" in value)

    @classmethod
    def cb_test(cls, ctx: click.Context, param: click.Option, value: str) -> None:
        """With ``--test``, say what holds of settings, token and service; no record is written."""
        if value != CliTestOptionValue.All.value:
            super().cb_test(ctx, param, value)
            return
        from tap_audit_events.reporting.connection_test import ConnectionTest

        config = ctx.params.get("config", _ConfigInput())
        tap = cls(config=config.config, parse_env_config=config.parse_env)
        ConnectionTest(tap.settings, tap.runtime, cls.logger).run()
        ctx.exit()

    @classmethod
    def invoke(  # type: ignore[override]  # the files' paths instead of open files
        cls,
        *,
        about: bool = False,
        about_format: str | None = None,
        config: _ConfigInput | None = None,
        state: str | None = None,
        catalog: str | None = None,
    ) -> None:
        """Run the tap as its command line asks."""
        PluginBase.invoke.__func__(cls, about=about, about_format=about_format)  # type: ignore[attr-defined]
        cls.print_version(print_fn=cls.logger.info)
        gc.freeze()  # a run makes thousands of objects a page, all freed by counting: the collector
        gc.set_threshold(100_000)  # would look through them, and through the program, for nothing
        config = config or _ConfigInput()
        tap = cls(
            config=config.config,
            parse_env_config=config.parse_env,
            catalog=_read_catalog(catalog),
            state=None if state is None else read_json_file("state", state),
        )
        if not any(stream.selected for stream in tap.streams.values()):
            cls.logger.warning("The catalog does not select %s: nothing is read", STREAM)
        tap.sync_all()
        tap.runtime.stop.check()


def _path(error: ValidationError) -> str:
    return ".".join(map(str, error.absolute_path)) or "settings"


def _read_catalog(path: str | None) -> dict[str, Any] | None:
    if path is None:
        return None
    return check_catalog(read_json_file("catalog", path))


class _Command(SingerCommand):
    """Where an error is expected, ends with a line for each thing to mend and its exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """As the SDK's, but for its two lines where settings of its own are wrong."""
        logging.captureWarnings(capture=True)
        sys.excepthook = self.excepthook
        return click.Command.invoke(self, ctx)

    def excepthook(
        self,
        exc_type: type[BaseException],
        exc_value: BaseException,
        exc_traceback: TracebackType | None,
    ) -> None:
        """As the SDK's, but with a code and a next step before the traceback."""
        defect = AuditEventsError(
            "AE-DEFECT", f" ({exc_type.__name__}: {sanitize(str(exc_value))})"
        )
        self.logger.error("%s", defect, exc_info=(exc_type, exc_value, exc_traceback))

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except AuditEventsError as error:
            ended = error
        except ConfigurationError as error:
            ended = SettingsError([f"The settings cannot be used: {_one_line(error)}"])
        except MappingError as error:
            ended = SettingsError(
                [f"stream_maps cannot be used: {_one_line(error)}"], "AE-STREAM-MAPS"
            )
        if isinstance(ended, StoppedError):
            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, signal.SIG_IGN)  # a second one would change the exit code now
        for line in ended.lines:
            self.logger.error("%s", line)
        sys.exit(ended.exit_code)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
