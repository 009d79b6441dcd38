"""The options of every subcommand, and the settings that result from them."""

# ruff: noqa: PLC0415 - `--help` needs no settings

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final

import click

from tap_audit_events.cli.terminal.process import LOGGER_NAME, exit_code_of
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.extraction.shutdown import Stop

if TYPE_CHECKING:
    from tap_audit_events.api.audit_events import AuditEvents
    from tap_audit_events.config.settings import Settings
    from tap_audit_events.events.instants import Instant
    from tap_audit_events.run.runtime import Runtime


@dataclass(frozen=True)
class Common:
    """The values of the options that every subcommand has.

    Attributes:
        config_files: the files of ``--config``; a later one overrides an earlier one.
        start: the time of the earliest event, as text.
        end: the time of the latest event, as text.
        quarantine: the file for events that cannot be used.
        quiet: whether only warnings and errors are shown.
        stop: ends a run at a signal.
    """

    config_files: Sequence[str]
    start: str | None
    end: str | None
    quarantine: str | None
    quiet: bool
    stop: Stop

    @property
    def logger(self) -> logging.Logger:
        """Where warnings go."""
        return logging.getLogger(LOGGER_NAME)

    def settings(self) -> Settings:
        """The settings of a command that writes no records of the tap."""
        from tap_audit_events.config.unknown_settings import warnings_of_tap_settings

        config = self.config()
        for warning in warnings_of_tap_settings(config):
            self.logger.warning("%s", warning)
        return self.settings_of(config)

    def settings_of(self, config: dict[str, Any]) -> Settings:
        """The settings in a configuration, and those of the options, which override it.

        Raises:
            SettingsError: one line for each setting to fix.
        """
        from msgspec.structs import replace

        from tap_audit_events.config.schema import SETTINGS
        from tap_audit_events.config.sdk_settings import OF_THE_TAP
        from tap_audit_events.config.settings import checked_settings
        from tap_audit_events.events.instants import first_instant, instant_of, last_instant

        if self.quiet:
            self.logger.setLevel(max(self.logger.level, logging.WARNING))
        if self.quarantine == "":
            raise SettingsError(["--quarantine is empty: give the path of a file"])
        if self.quarantine is not None:
            config = {**config, "quarantine_file": self.quarantine}
        settings = checked_settings(
            config,
            self.logger,
            known=[*SETTINGS, *OF_THE_TAP],
            environment="in the environment",
        )
        start = _instant("--start", first_instant, self.start) or settings.start_date
        end = _instant("--end", last_instant, self.end) or settings.end_date
        if start is not None and end is not None and end < start:
            problem = "--end or end_date is before --start or start_date"
            raise SettingsError([f"{problem}: it must be the same or later"])
        if start is not None and start > instant_of(self.runtime().now()):
            self.logger.warning("Nothing to read yet: --start or start_date lies in the future")
        return replace(settings, start_date=start, end_date=end)

    def runtime(self) -> Runtime:
        """The runtime of a run that ends at a signal."""
        from tap_audit_events.run.quarantine import QuarantineFile
        from tap_audit_events.run.runtime import Runtime

        # One for all runs of --follow, so that each names only what the earlier ones did not find.
        return Runtime(stop=self.stop, new_quarantine=cache(QuarantineFile))

    def events_of(self, settings: Settings) -> AuditEvents:
        """The events that the settings describe."""
        from tap_audit_events.api.audit_events import AuditEvents

        return AuditEvents.of_settings(settings, self.runtime)

    def config(self) -> dict[str, Any]:
        """The settings of the files, else of the environment, with those of the tap alone."""
        from tap_audit_events.config.environment import settings_of
        from tap_audit_events.config.input_files import read_json_file
        from tap_audit_events.config.settings import override

        config = settings_of(os.environ)
        for path in self.config_files:
            if path != "ENV":  # the environment is always read
                config = override(config, read_json_file("config", path))
        return config


def _instant(option: str, parse: Callable[[str], Instant], text: str | None) -> Instant | None:
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise SettingsError([f"{option} {error}"]) from None


_OPTIONS: Final = (
    click.option("--config", "config_files", multiple=True, metavar="FILE",
                 help="A JSON file with settings. They override the environment. May be repeated."),
    click.option("--start", metavar="TIME",
                 help="Time of the earliest event, such as 2026-01-31T00:00:00Z; a date alone,"
                      " such as 2026-01-31, is midnight UTC.  [default: start_date, else the"
                      " oldest event]"),
    click.option("--end", metavar="TIME",
                 help="Time of the latest event; a date alone is the end of that day in UTC."
                      "  [default: end_date, else now]"),
    click.option("--quarantine", metavar="FILE",
                 help="Append events that cannot be used to this file, and continue.  [default:"
                      " quarantine_file, else such an event is an error]"),
    click.option("-q", "--quiet", is_flag=True,
                 help="On stderr, show only warnings and errors."),
)  # fmt: skip


def common_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a subcommand the common options, as one argument `common`."""

    @wraps(command)
    def with_common(
        *,
        config_files: Sequence[str],
        start: str,
        end: str,
        quarantine: str,
        quiet: bool,
        **more: Any,
    ) -> None:
        stop: Stop = click.get_current_context().find_object(Stop) or Stop()
        try:
            command(**more, common=Common(config_files, start, end, quarantine, quiet, stop))
        except BrokenPipeError as error:  # click would exit without a message
            sys.exit(exit_code_of(error))

    for option in reversed(_OPTIONS):
        with_common = option(with_common)
    return with_common
