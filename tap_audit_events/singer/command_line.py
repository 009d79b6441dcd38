"""The command line: the SDK's command, with errors of one line and exit codes that say why."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from singer_sdk.plugin_base import SingerCommand
from singer_sdk.tap_base import CliTestOptionValue

from tap_audit_events.config.process import STDOUT_ERRORS, abandon
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OutputError,
    StoppedError,
    defect,
)
from tap_audit_events.errors.redacted_output import redact_handlers
from tap_audit_events.errors.redaction import redact
from tap_audit_events.extraction.shutdown import ignore_signals

if TYPE_CHECKING:
    from types import TracebackType

_HELP = {
    "config": "A JSON file with settings, or ENV for the settings in the environment. May be"
    " repeated: a later file overrides an earlier one, and ENV overrides all files.",
    "discover": "Print the catalog: the streams and their fields.",
    "catalog": "A catalog from --discover, perhaps changed: which fields to write, and how.",
    "state": "The last state of an earlier run, which this run continues.",
    "test": "Test the settings, the token and the connection, and log the results; writes no"
    " record. --test=schema writes the schema without a request.",
}
"""Help texts that say more than those of the SDK."""


def with_one_line_errors(command: click.Command, logger: logging.Logger) -> click.Command:
    """The SDK's command; the tap reads the files itself, and logs each error as a line."""
    for parameter in command.params:
        if parameter.name in {"catalog", "state"}:
            parameter.type = click.STRING  # the tap reads the file, and says what is wrong with it
        if parameter.name == "test":
            parameter.type = click.Choice([option.value for option in CliTestOptionValue])
        if parameter.name in _HELP and isinstance(parameter, click.Option):
            parameter.help = _HELP[parameter.name]
    return OneLineErrors(
        name=command.name,
        help="Write the audit events of an organization to stdout, as Singer messages.",
        params=command.params,
        callback=command.callback,
        context_settings=command.context_settings,
        logger=logger,
    )


class OneLineErrors(SingerCommand):
    """The SDK's command, with a line for each expected error instead of a traceback."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the command line, and the files that it names; some options print and exit."""
        with _ending_with_a_code():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors reach `main` or `excepthook`."""
        with _ending_with_a_code():
            return click.Command.invoke(self, ctx)

    def excepthook(
        self,
        exc_type: type[BaseException],
        exc_value: BaseException,
        exc_traceback: TracebackType | None,
    ) -> None:
        """Log an unexpected error: its code and the next step, then the traceback."""
        exc_info = (exc_type, exc_value, exc_traceback)
        self.logger.error("%s", defect(exc_value), exc_info=exc_info)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command, log expected errors, and exit with their exit code."""
        logging.captureWarnings(capture=True)
        redact_handlers()
        sys.excepthook = self.excepthook
        try:
            return super().main(*args, **kwargs)
        except AuditEventsError as error:
            ended: AuditEventsError = error
        except OSError as error:
            if error.errno not in STDOUT_ERRORS:  # of --discover, --about, --version or --help
                raise
            abandon(sys.stdout.fileno())
            ended = OutputError(error.strerror)
        if isinstance(ended, StoppedError):
            ignore_signals()
        for line in ended.lines:
            self.logger.error("%s", line)
        sys.exit(ended.exit_code)


@contextmanager
def _ending_with_a_code() -> Iterator[None]:
    """Flush stdout, as a failure at exit would have no code; turn Ctrl-C into a `StoppedError`.

    The secrets in an error of the command line are masked.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(signal.SIGINT) from None
    except click.UsageError as error:
        raise click.UsageError(redact(error.format_message()), error.ctx) from None
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()
