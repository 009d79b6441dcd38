"""The tap: settings, discovery, state, command line.

Modules that only a run needs are imported by it, so that `--version` and `--about` start as fast as
the SDK.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import click
from singer_sdk import Stream, Tap
from singer_sdk.helpers._classproperty import classproperty
from singer_sdk.helpers.capabilities import CapabilitiesEnum, PluginCapabilities, TapCapabilities
from singer_sdk.plugin_base import PluginBase, _ConfigInput
from singer_sdk.singerlib import Catalog, CatalogEntry
from singer_sdk.singerlib.catalog import Metadata
from singer_sdk.tap_base import CliTestOptionValue

from tap_audit_events.config.environment import settings_of
from tap_audit_events.config.fields import set_values
from tap_audit_events.config.input_files import read_json_file
from tap_audit_events.config.names import PACKAGE
from tap_audit_events.config.process import runs_under_meltano
from tap_audit_events.config.schema import SETTINGS, SETTINGS_SCHEMA
from tap_audit_events.config.sdk_settings import OF_THE_TAP, SdkSettings, read_sdk_settings
from tap_audit_events.config.settings import (
    Settings,
    checked_settings,
    override,
    register_secrets,
    shape_to_discover,
)
from tap_audit_events.config.singer_shapes import check_catalog, check_state
from tap_audit_events.errors.exceptions import AuditEventsError, SettingsError, sanitize
from tap_audit_events.events.stream_names import COVERAGE_STREAM, REPLICATION_KEY, STREAM
from tap_audit_events.singer.command_line import with_one_line_errors
from tap_audit_events.singer.stream_maps import (
    check_keys,
    check_names,
    check_schemas,
    stream_map_problems,
)

if TYPE_CHECKING:
    from tap_audit_events.run.runtime import Runtime
    from tap_audit_events.singer.messages import MessageWriter


class TapAuditEvents(Tap):
    """Singer tap for the audit events of an organization: who did what, when and where."""

    name = PACKAGE
    message_writer: MessageWriter
    config_jsonschema: ClassVar[dict[str, Any]] = deepcopy(SETTINGS_SCHEMA)  # the SDK changes it
    capabilities: ClassVar[list[CapabilitiesEnum]] = [
        TapCapabilities.CATALOG,
        TapCapabilities.STATE,
        TapCapabilities.DISCOVER,
        PluginCapabilities.ABOUT,
        PluginCapabilities.BATCH,
        PluginCapabilities.STREAM_MAPS,
        PluginCapabilities.FLATTENING,
        PluginCapabilities.STRUCTURED_LOGGING,
    ]

    settings: Settings
    sdk_settings: SdkSettings
    """The checked settings; absent in discovery, which needs none."""

    def __init__(self, *args: Any, runtime: Runtime | None = None, **kwargs: Any) -> None:
        from tap_audit_events.run.runtime import Runtime
        from tap_audit_events.singer.messages import MessageWriter

        self.logger.addFilter(_drop_line_of_deselected_coverage)
        self.runtime = runtime or Runtime()
        super().__init__(*args, **{"message_writer": MessageWriter(), **kwargs})

    def discover_streams(self) -> Sequence[Stream]:
        """The events, and the evidence of their ranges; the SDK syncs streams sorted by name."""
        from tap_audit_events.singer.coverage_stream import CoverageStream
        from tap_audit_events.singer.stream import AuditEventsStream

        coverage = CoverageStream(self, now=self.runtime.now)
        events = AuditEventsStream(
            self,
            runtime=self.runtime,
            writer=self.message_writer,
            coverage=coverage,
            settings=lambda: (self.settings, self.sdk_settings),
        )
        return [events, coverage]

    def setup_mapper(self) -> None:
        if self.input_catalog is not None and (entry := self.input_catalog.get_stream(STREAM)):
            self._fit_to_settings(entry)
        catalog_to_map = self._catalog_to_map()
        try:
            PluginBase.setup_mapper(self)
            self.mapper.register_raw_streams_from_catalog(catalog_to_map)
            check_schemas(chain.from_iterable(self.mapper.stream_maps.values()))
            selected = [
                each for name in self._selected_streams() for each in self.mapper.stream_maps[name]
            ]
            check_names(selected)
            check_keys(selected)
        except AuditEventsError:
            raise
        except Exception as error:
            if not any(map(self.config.get, ("stream_maps", "flattening_enabled"))):
                raise
            reason = f"{type(error).__name__}: {sanitize(error)}"
            raise SettingsError(
                [f"stream_maps or the flattening settings cannot be used ({reason})"],
                "AE-STREAM-MAPS",
            ) from error

    def _fit_to_settings(self, entry: CatalogEntry) -> None:
        """Give a catalog's entry the schema and the keys of records with the current settings.

        A catalog may have been written for records of another shape, or without keys.
        """
        from singer_sdk.singerlib import Schema

        from tap_audit_events.events.schema import KEYS_OF_SHAPES, keys_of, schema_of

        shape = shape_to_discover(self.config)
        schema, keys = schema_of(shape, entry.schema.to_dict()), keys_of(shape)
        entry.schema = Schema.from_dict(schema)
        given = entry.key_properties
        has_fields = schema["properties"].keys() >= set(keys)
        if has_fields and (given is None or tuple(given) in KEYS_OF_SHAPES):
            entry.key_properties = keys
        for name in (*keys, REPLICATION_KEY):
            breadcrumb = ("properties", name)
            if breadcrumb in entry.metadata:  # otherwise it is selected with the stream
                # Even if the catalog deselects it: targets need the keys.
                entry.metadata[breadcrumb].inclusion = Metadata.InclusionType.AUTOMATIC

    def _catalog_to_map(self) -> Catalog:
        """The catalog, with all fields of a stream that is not selected.

        A pattern in ``stream_maps`` may match such a stream, whose keys would otherwise be missing.
        """
        from singer_sdk.singerlib import MetadataMapping

        selected = self._selected_streams()
        return Catalog(
            (name, entry if name in selected else replace(entry, metadata=MetadataMapping()))
            for name, entry in self.catalog.items()
        )

    def _selected_streams(self) -> list[str]:
        """The names of the streams that the catalog selects."""
        entries = self.catalog.items()
        return [name for name, each in entries if each.metadata.resolve_selection()[()]]

    def load_state(self, state: dict[str, Any]) -> None:
        """Load the bookmarks of earlier runs; `SettingsError` if it is not a Singer state."""
        check_state(state)
        if state and not state["bookmarks"].get(STREAM):
            self.logger.warning("The state has no bookmark for %s: all events are read", STREAM)
        super().load_state(state)

    def _validate_config(self, *, raise_errors: bool = True) -> list[str]:
        """Read the settings once; without `raise_errors`, as in discovery, nothing is checked.

        Raises:
            SettingsError: with one line for each setting to fix.
        """
        register_secrets(self.config)
        if not raise_errors:
            return []
        given = self._config
        self._config = deepcopy(set_values(self._config))  # the SDK changes stream_maps
        errors: list[SettingsError] = []
        tokens: Sequence[str] = ()
        try:
            self.settings = checked_settings(
                given,
                self.logger,
                known=[*SETTINGS, *OF_THE_TAP],
                environment="in the environment, with --config ENV",
                from_yaml=runs_under_meltano(os.environ),
            )
            tokens = self.settings.tokens
        except SettingsError as error:
            errors.append(error)
        try:
            self.sdk_settings = read_sdk_settings(self._config, tokens=tokens)
        except SettingsError as error:
            errors.append(error)
        if problems := stream_map_problems(self._config.get("stream_maps")):
            errors.append(SettingsError(problems, "AE-STREAM-MAPS"))
        if errors:
            raise SettingsError.joined(errors)
        if "flattening_max_depth" in self._config and "flattening_enabled" not in self._config:
            self.logger.warning("flattening_max_depth has no effect without flattening_enabled")
        return []

    def _handle_termination(self, signum: int, frame: object) -> None:
        """Ask the run to stop; a second signal ends the process at once."""
        self.runtime.stop.handle(signum, frame)

    @classproperty
    def _env_var_config(cls) -> dict[str, Any]:  # noqa: N805 - a property of the class
        """Settings from the environment.

        The SDK would also read a ``.env`` file in any folder above the installed package.
        """
        return settings_of(os.environ)

    # Command line

    @classmethod
    def get_singer_command(cls) -> click.Command:
        """The SDK's command, with errors of one line instead of tracebacks."""
        return with_one_line_errors(super().get_singer_command(), cls.logger)

    @classmethod
    def cb_config(
        cls, ctx: click.Context, param: click.Option, value: tuple[str, ...]
    ) -> _ConfigInput:
        """Read and merge the files of ``--config``; ``ENV`` stands for the environment."""
        del ctx, param
        config: dict[str, Any] = {}
        for path in value:
            if path != "ENV":
                config = override(config, read_json_file("config", path))
        if "ENV" in value:
            config = override(config, cls._env_var_config)
        return _ConfigInput(config=config, parse_env="ENV" in value)

    @classmethod
    def cb_test(cls, ctx: click.Context, param: click.Option, value: str) -> None:
        """With ``--test``, test settings, token and connection; no record is written."""
        if value in {CliTestOptionValue.Schema.value, CliTestOptionValue.Disabled.value}:
            super().cb_test(ctx, param, value)
            return
        from tap_audit_events.reporting.connection_test import check_connection

        config: _ConfigInput = ctx.params["config"]
        tap = cls(config=config.config, parse_env_config=config.parse_env)
        check_connection(tap.settings, tap.runtime, cls.logger)
        ctx.exit()

    @classmethod
    def invoke(  # type: ignore[override]  # the files' paths instead of open files
        cls,
        *,
        about: bool,
        about_format: str | None,
        config: _ConfigInput,
        state: str | None,
        catalog: str | None,
    ) -> None:
        """Run the tap with the options of the command line."""
        PluginBase.invoke.__func__(cls, about=about, about_format=about_format)  # type: ignore[attr-defined]
        cls.print_version(print_fn=cls.logger.info)
        tap = cls(
            config=config.config,
            parse_env_config=config.parse_env,
            catalog=None if catalog is None else check_catalog(read_json_file("catalog", catalog)),
            state=None if state is None else read_json_file("state", state),
        )
        if not tap.streams[STREAM].selected:
            cls.logger.warning("The catalog does not select %s: nothing is read", STREAM)
        tap.sync_all()
        tap.runtime.stop.check()


def _drop_line_of_deselected_coverage(record: logging.LogRecord) -> bool:
    """Drop the SDK's line that the coverage stream is deselected, as it is by default."""
    is_skipped = str(record.msg).startswith("Skipping deselected stream")
    return not (is_skipped and record.args == (COVERAGE_STREAM,))
