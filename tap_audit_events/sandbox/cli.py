"""The command `audit-events-sandbox`."""

import signal
import sys
from typing import Any, Final

import click

from tap_audit_events.sandbox.command import exit_code_of, run_command
from tap_audit_events.sandbox.options import make_service, service_options
from tap_audit_events.sandbox.server import serve

FAULTS_HELP: Final = """\b
Faults are written KIND[:OPTION=VALUE,...]@WHEN:
  status:code=429,retry-after=3@2   a status; also retry-after-date=SECONDS
                                    from now, err-code, msg, location
  body:text=%3Chtml%3E,content-type=text/html@1
                                    these bytes, percent-encoded, with 200
  reset@3                           the connection is reset
  cut:bytes=100@4                   the body ends after 100 bytes
  hang:seconds=90@5                 the answer comes after 90 seconds
  empty@*/10                        a page without events, with a cursor
  short:events=1@2-5                a page with fewer events than asked for
  expire@7                          the cursor is refused with 400
  null-cursor@*                     "nextCursor": null on the last page
  same-cursor:back=1@9              the cursor of the page before, again
WHEN numbers the requests from 1: 3, 3-5, 3-, 2,4, */10 (each tenth), * (all).
"""


@click.group(epilog="Example: audit-events-sandbox run -- sh -c 'echo $TAP_AUDIT_EVENTS_BASE_URL'")
def main() -> None:
    """Serve made-up audit events on this machine, as the real service would.

    The sandbox answers like the audit events export interface: the same operation, the same
    rules, the same errors. It asks for a token and an organization, and knows just one of each.
    """


@main.command("serve", epilog=FAULTS_HELP)
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="The port, a free one by default."
)
@service_options
def serve_command(port: int, **options: Any) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Where it is served, and what a client needs, is printed in lines of NAME: VALUE.

    Example: audit-events-sandbox serve --events 50000 --live 5 --fault status:code=503@*/20
    """
    service = make_service(**options)
    stopping = {signal.SIGINT, signal.SIGTERM}
    # Blocked here and so in the server's thread too, they wait for sigwait.
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping)
    try:
        with serve(service, port) as server:
            click.echo(f"base_url: {server.base_url}")
            click.echo(f"organization_id: {service.organization_id}")
            click.echo(f"access_token: {service.access_token}")
            click.echo(f"events: {options['events']}")
            signal.sigwait(stopping)
    except OSError as error:
        raise click.ClickException(f"port {port} cannot be served: {error.strerror}") from error


@main.command("run", epilog=FAULTS_HELP, context_settings={"allow_interspersed_args": False})
@service_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(command: tuple[str, ...], **options: Any) -> None:
    """Run COMMAND with a sandbox beside it, and return its exit code.

    COMMAND finds the sandbox in TAP_AUDIT_EVENTS_BASE_URL, TAP_AUDIT_EVENTS_ORGANIZATION_ID and
    TAP_AUDIT_EVENTS_ACCESS_TOKEN. A signal n that ends it makes the exit code 128 + n.

    Example: audit-events-sandbox run --events 500 -- tap-audit-events --config=ENV
    """
    service = make_service(**options)
    with serve(service) as server:
        variables = {
            "TAP_AUDIT_EVENTS_BASE_URL": server.base_url,
            "TAP_AUDIT_EVENTS_ORGANIZATION_ID": service.organization_id,
            "TAP_AUDIT_EVENTS_ACCESS_TOKEN": service.access_token,
        }
        try:
            code = run_command(command, variables)
        except OSError as error:
            click.echo(f"audit-events-sandbox: {command[0]}: {error.strerror}", err=True)
            code = exit_code_of(error)
    sys.exit(code)


if __name__ == "__main__":
    main()
