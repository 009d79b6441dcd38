"""The command line: subcommands, errors and exit codes."""

# ruff: noqa: PLC0415 - what only one subcommand needs is imported by it, so that `--help` is quick

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import StringIO
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tap_audit_events.cli.filter_options import filter_options
from tap_audit_events.cli.form_options import form_options
from tap_audit_events.cli.options import Common, common_options
from tap_audit_events.cli.terminal.process import exit_code_of, log_to_stderr, write_stderr
from tap_audit_events.config.names import PACKAGE
from tap_audit_events.config.process import check_log_levels, guard_output
from tap_audit_events.extraction.shutdown import Stop

if TYPE_CHECKING:
    from tap_audit_events.events.event_filter import EventFilter

_EPILOG = f"""The settings are those of {PACKAGE}. They are read from environment variables, such as
TAP_AUDIT_EVENTS_BASE_URL, TAP_AUDIT_EVENTS_ORGANIZATION_ID and TAP_AUDIT_EVENTS_ACCESS_TOKEN, and
from the files of --config. Every error is one line on stderr that begins with a code, except an
invalid command line (exit code 2)."""

format_option = click.option(
    "--format",
    "format_",
    default="table",
    show_default=True,
    type=click.Choice(["table", "csv", "json"]),
    help="How to print the counts.",
)


def _only_one(context: click.Context, option: click.Parameter, values: tuple[Any, ...]) -> Any:
    """The value of an option that may be given once: click would silently use the last one."""
    if len(values) > 1:
        raise click.BadParameter("give it once", context, option)
    return values[0] if values else None


_ONCE: dict[str, Any] = {"multiple": True, "callback": _only_one}


def _path_of(text: str) -> Path:
    """The path of an option. An empty one, from an unset variable, would be the current folder."""
    if not text:
        raise click.BadParameter("the path is empty")
    if "://" in text:  # not shown: a password may be in it
        raise click.BadParameter("it must be a path, not a URL")
    return Path(text)


def _number(context: click.Context, option: click.Parameter, value: float) -> float:
    """The value of an option with a range: for click, NaN lies inside of any range."""
    if isnan(value):
        raise click.BadParameter("nan is not a number", context, option)
    return value


def _header_value(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not (value.isascii() and value.isprintable() and value.strip()):
        raise click.BadParameter("it must be printable ASCII", context, option)
    return value


def _follow_option(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--follow", "-f", is_flag=True, help=text)


_interval_option = click.option(
    "--interval",
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(0.1, 3600),
    callback=_number,
    help="With --follow, seconds between two checks for new events.",
)


def main() -> int:
    """Run the command, and return its exit code."""
    stop = Stop()
    stop.handle_signals()  # first, so that Ctrl-C shows no traceback
    guard_output(sys.argv[1:])
    try:
        check_log_levels(os.environ)
        log_to_stderr(os.environ)
        return audit_events.main(prog_name="audit-events", obj=stop, standalone_mode=False) or 0
    except SystemExit:
        raise
    except click.ClickException as error:
        shown = StringIO()
        error.show(shown)
        write_stderr(shown.getvalue().rstrip("\n"))
        return error.exit_code
    except BaseException as error:  # noqa: BLE001 - becomes a line and an exit code
        return exit_code_of(error)


@click.group(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name=PACKAGE, prog_name="audit-events")
def audit_events() -> None:
    """Export, count, watch, verify and draw the audit events of one or several organizations."""


@audit_events.command(
    epilog="""Example, from cron, each hour:

\b
    audit-events export -q --config config.json \\
        --to events.parquet --state events.state.json

\b
The end of the path selects the format:
  .parquet   one Parquet file
  .duckdb    the table audit_events of a DuckDB file; other tables stay
  .jsonl     JSON Lines: one event per line, as the service sent it
  .jsonl.gz  the same, compressed
  .csv       CSV: a text that could be a formula has an apostrophe in front
  .csv.gz    the same, compressed
  /          a folder of Parquet files, with a subfolder for each UTC day
             (also without the slash, if the folder exists)

\b
A table gets what is new:
  postgresql://user@host/database
             a table of PostgreSQL; keep the password in PGPASSWORD or
             ~/.pgpass. Needs [postgres]
  delta:FOLDER, delta:s3://BUCKET/PATH, delta:gs://..., delta:az://...
             a Delta table, on a disk or in an object store. Needs [delta]
  iceberg:CATALOG/namespace.table
             a table of Iceberg, in a catalog of PyIceberg's configuration.
             Needs [iceberg]

Without --state, the new file or table replaces the old one when it is complete; a folder must be
empty or missing. With --state, new events are added when the export ends, even if an error ends it.
An export that is killed leaves each file whole: the old one or the new one. A table needs no
--state: its state is with it, and the next export continues after what was committed.

With --as ocsf, JSON Lines have OCSF events, and tables and Parquet files one more column, ocsf.

All exports into one output must have the same --actor, --entity and --as: the state remembers
them."""
)
@click.option(
    "--to",
    required=True,
    **_ONCE,
    metavar="PLACE",
    help="What to write; see below.",
)
@click.option(
    "--table",
    metavar="NAME",
    help="The table of PostgreSQL, such as raw.audit_events.  [default: audit_events]",
)
@click.option(
    "--state",
    **_ONCE,
    metavar="FILE",
    type=_path_of,
    help="Add only events that are new since the last export with this file. The first export"
    " creates it.",
)
@filter_options
@form_options
@common_options
def export(to: str, table: str | None, state: Path | None, **options: Any) -> None:
    """Write events to a file, a folder, or a table of DuckDB or PostgreSQL."""
    from tap_audit_events.cli.export import run_export

    run_export(to, table, state, **options)


@audit_events.command(
    epilog="""Example:

    audit-events count --by actor --format csv > actors.csv

Every event in the range is read. Days are UTC days. If there are more than 200,000 different
actions or actors, or 64 MB of their names, the last line counts the events of all others.

With --format csv, a text that a spreadsheet could take for a formula begins with an apostrophe."""
)
@click.option(
    "--by",
    required=True,
    type=click.Choice(["day", "action", "actor"]),
    help="Count the events of each day, each action type or each actor.",
)
@format_option
@filter_options
@common_options
def count(by: str, format_: str, filters: EventFilter, common: Common) -> None:
    """Count events by day, action type or actor."""
    from tap_audit_events.cli.count import run_count

    run_count(by, format_, filters, common)


@audit_events.command(
    epilog="""Example:

    audit-events tail --follow | jq -r '[.occurredAt, .action.type] | @tsv'

Events are in ascending order, one JSON object per line, as the service sent them. With --follow,
an event that becomes visible late is printed too, once, after newer ones. While the service fails,
limits requests or refuses cursors, --follow waits and says so on stderr. It cannot be combined with
--end or the setting end_date.

With --actor or --entity, the newest N events that match are printed. To find them, all events are
read backwards until there are N, at most to --start, else to the oldest event: give --start if the
history is long and few events match."""
)
@_follow_option("Keep printing events as they appear.")
@click.option(
    "-n",
    "lines",
    default=10,
    show_default=True,
    metavar="N",
    type=click.IntRange(0, 100_000),
    help="Begin with the newest N events.",
)
@_interval_option
@filter_options
@common_options
def tail(follow: bool, lines: int, interval: float, filters: EventFilter, common: Common) -> None:
    """Print the newest events; --follow adds later ones."""
    from tap_audit_events.cli.tail import run_tail

    run_tail(lines, filters, common, interval if follow else None)


@audit_events.command(
    epilog="""Example:

\b
    export AUDIT_EVENTS_RECEIVER_SECRET=...
    audit-events ship --config config.json --follow \\
        --to https://collector.example.com/ingest --state ship.state.json

\b
The start of --to selects the kind of receiver:
  https://...    JSON Lines by POST: Vector, Fluent Bit, Cribl, a function
  splunk-hec:https://...
                 Splunk's HTTP Event Collector, by default at
                 /services/collector/event. Parameters: ?index=NAME,
                 source, sourcetype, host
  opensearch:https://.../INDEX, elasticsearch:https://.../INDEX
                 an index or a data stream: each event is one document
  otlp:https://...
                 OpenTelemetry's protocol by HTTP, by default at /v1/logs

A batch is sent, the receiver acknowledges it, then the state file moves: a run that is killed sends
the events since then again. If the receiver is down, slow or limits, batches are sent again, as
often as max_retries says; with --follow, without end. An event that the receiver refuses for good
ends the run, or is appended to the file of --quarantine. The receiver's secret (a token,
user:password, or the whole value of the header) is read from AUDIT_EVENTS_RECEIVER_SECRET or
--secret-file, and goes only to the receiver. If it belongs into the URL, write {secret} there."""
)
@click.option(
    "--to", required=True, **_ONCE, metavar="RECEIVER", help="Where to send to; see below."
)
@click.option(
    "--state",
    required=True,
    **_ONCE,
    metavar="FILE",
    type=_path_of,
    help="What the receiver has acknowledged. The first run creates it.",
)
@_follow_option("Keep sending events as they appear.")
@_interval_option
@click.option("--secret-file", metavar="FILE", help="A file that contains only the secret.")
@click.option(
    "--secret-header",
    metavar="NAME",
    help="The header that carries the secret as it is, such as X-Api-Key.  [default:"
    " Authorization]",
)
@click.option(
    "--batch-events",
    default=5_000,
    show_default=True,
    metavar="N",
    type=click.IntRange(1, 100_000),
    help="The most events in a batch, which has at most 4 MB before compression.",
)
@click.option(
    "--gzip/--no-gzip",
    default=True,
    help="Whether to compress; the receiver must know gzip.  [default: gzip]",
)
@click.option(
    "--content-type",
    metavar="TYPE",
    callback=_header_value,
    help="The Content-Type of JSON Lines, such as application/json for Fluent Bit."
    "  [default: application/x-ndjson]",
)
@filter_options
@form_options
@common_options
def ship(common: Common, **options: Any) -> None:
    """Send events to a collector or SIEM, each batch until it is acknowledged."""
    from tap_audit_events.cli.ship import ShipOptions, run_ship

    run_ship(ShipOptions(**options), common)


@audit_events.command(
    epilog="""Example, on the first day of a month:

\b
    audit-events verify --against postgresql://reader@db/warehouse \\
        --start 2026-10-01 --end 2026-10-31 --repair missing.singer

The range is read again from the service. Events are compared by id and occurredAt, at the precision
of the table. The exit code is 0 if all are equal, and 1 if not.

\b
What was loaded is one of these:
  .jsonl, .jsonl.gz  JSON Lines, as target-jsonl and export write them
  .parquet           a Parquet file
  a folder           all such files in it and in its subfolders
  .duckdb .db .ddb   a DuckDB file
  postgresql://...   a PostgreSQL database; keep the password in
                     PGPASSWORD
  delta:...          a Delta table, as export names it
  iceberg:CATALOG/namespace.table
                     a table of Iceberg

With several organizations, events are compared by organization and id. With --format table, up to
20 events of each kind that differ are listed; --list writes all of them.

Needs the extra [duckdb], and [postgres], [delta] or [iceberg] for such a table."""
)
@click.option(
    "--against",
    required=True,
    **_ONCE,
    metavar="PLACE",
    help="What was loaded; see below.",
)
@click.option(
    "--table",
    metavar="NAME",
    help="The table of a database, such as raw.audit_events.  [default: audit_events]",
)
@click.option("--repair", metavar="FILE", type=_path_of, help="Write the missing events to a file.")
@click.option(
    "--repair-format",
    default="singer",
    show_default=True,
    type=click.Choice(["jsonl", "singer"]),
    help="Singer messages for a loader, or JSON Lines.",
)
@click.option(
    "--catalog",
    metavar="FILE",
    help="The catalog with which the tap runs: the file of --repair leaves out what it deselects.",
)
@click.option(
    "--list",
    "list_file",
    metavar="FILE",
    type=_path_of,
    help="Write all events that differ to a CSV file.",
)
@format_option
@common_options
def verify(common: Common, **options: Any) -> None:
    """Compare what was loaded with what the service shows."""
    from tap_audit_events.cli.verify import VerifyOptions, run_verify

    run_verify(VerifyOptions(**options), common)


@audit_events.command(
    epilog="""Example:

    audit-events report --from loaded.duckdb --year 2026 --to 2026.html

Each day has a cell. Its color says how many events the table audit_events has. Time that no record
of audit_events_coverage covers is hatched; with several organizations, time is covered if it is
covered for each of them. The files of an export have no such records: of them, the days are drawn.
Needs the extra [report], and [postgres], [delta] or [iceberg] for such a table."""
)
@click.option(
    "--from",
    "source",
    required=True,
    metavar="PLACE",
    help="The .duckdb, .db or .ddb file, or the postgresql:// URL, with the loaded tables; or a"
    " .parquet, .jsonl or .jsonl.gz file, a folder of such files,"
    " delta:... or iceberg:CATALOG/namespace.table.",
)
@click.option("--year", required=True, type=click.IntRange(1, 9998), help="The year, in UTC.")
@click.option("--to", required=True, metavar="FILE", help="The picture: .svg or .html.")
@click.option("--schema", metavar="NAME", help="The schema of both tables.")
@click.pass_obj
def report(stop: Stop, source: str, year: int, to: str, schema: str | None) -> None:
    """Draw a calendar of what was loaded and covered."""
    from tap_audit_events.cli.report import run_report

    run_report(source, year, to, schema, stop)
