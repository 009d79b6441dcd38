"""The command `audit-events-sandbox`."""

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from types import FrameType
from typing import Any

import click

from tap_audit_events.errors.installation import command_for
from tap_audit_events.sandbox import serve
from tap_audit_events.sandbox.cli_options import (
    create_service,
    environment_of,
    service_options,
)
from tap_audit_events.sandbox.faults import FAULTS_HELP

NOT_EXECUTABLE = 126
NOT_FOUND = 127
"""The exit codes of a shell that cannot run a command."""

CONTRADICTING = {
    f"TAP_AUDIT_EVENTS_{name}" for name in ("ORGANIZATION_ID", "ORGANIZATIONS", "ACCESS_TOKEN_FILE")
}
"""Variables that may not be set next to those of the sandbox."""


@click.group(epilog="Example: audit-events-sandbox run -- sh -c 'echo $TAP_AUDIT_EVENTS_BASE_URL'")
def main() -> None:
    """Serve generated audit events on this machine, as the real service would.

    The sandbox implements the audit events export interface: the same operation, rules and
    errors. It has one or several organizations, and accepts one access token.
    """
    try:  # Every installation has the command, also without its extra.
        importlib.import_module("tap_audit_events.sandbox.server")
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"the sandbox needs {error.name}. This command adds it and keeps everything else:"
            f" {command_for('sandbox', str(error.name))}"
        ) from None


@main.command("serve", epilog=FAULTS_HELP)
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="Port; by default a free one."
)
@service_options
def serve_command(port: int, **options: Any) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Prints the base URL, the organization ID, the access token and the number of events, one per
    line; with --organizations, the list of organizations instead of the ID.

    Example: audit-events-sandbox serve --live 5 --fault 'status:code=503@*/20'
    """
    service = create_service(**options)
    stopping = {signal.SIGINT, signal.SIGTERM}
    # Blocked here, and so in the server's thread too, they stay pending until sigwait.
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping)
    with ExitStack() as entered:
        try:
            server = entered.enter_context(serve(service, port))
        except OSError as error:
            raise click.ClickException(f"cannot listen on port {port}: {error.strerror}") from error
        for name, value in environment_of(service, server.base_url).items():
            click.echo(f"{name.removeprefix('TAP_AUDIT_EVENTS_').lower()}: {value}")
        click.echo(f"events: {options['events']}")
        signal.sigwait(stopping)


@main.command("run", epilog=FAULTS_HELP, context_settings={"allow_interspersed_args": False})
@service_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(command: tuple[str, ...], **options: Any) -> None:
    """Run COMMAND while the sandbox serves, and return its exit code.

    COMMAND finds the sandbox in the environment variables TAP_AUDIT_EVENTS_BASE_URL,
    TAP_AUDIT_EVENTS_ORGANIZATION_ID and TAP_AUDIT_EVENTS_ACCESS_TOKEN; with --organizations,
    TAP_AUDIT_EVENTS_ORGANIZATIONS. Variables that contradict these, such as
    TAP_AUDIT_EVENTS_ACCESS_TOKEN_FILE, are not passed on. If signal n ends COMMAND, the exit code
    is 128 + n.

    Example: audit-events-sandbox run -- audit-events count --by action
    """
    service = create_service(**options)
    with serve(service) as server:
        variables = environment_of(service, server.base_url)
        try:
            code = _run_command(command, variables)
        except OSError as error:
            click.echo(f"audit-events-sandbox: {command[0]}: {error.strerror}", err=True)
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    sys.exit(code)


def _run_command(command: Sequence[str], variables: dict[str, str]) -> int:
    """Run a command with the sandbox's variables; SIGINT and SIGTERM are passed on to it.

    Ctrl-C in a terminal reaches the command by itself. Returns its exit code, or 128 + n if signal
    n ended it.

    Raises OSError if it cannot be started.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in CONTRADICTING}
    process = subprocess.Popen(command, env=inherited | variables)  # noqa: S603

    def pass_on(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT or not os.isatty(0):
            process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    code = process.wait()
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    main()
