"""Chooses the output that `--to` names: one row for each kind, chosen by the form of the text."""

# ruff: noqa: PLC0415 - the libraries of a kind are imported if it is used

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.outputs.durable import (
    check_files_differ,
    check_is_file,
    resolved,
    unusable,
)
from tap_audit_events.outputs.form import AS_SENT, Form
from tap_audit_events.outputs.lock import locked
from tap_audit_events.outputs.output import Output
from tap_audit_events.outputs.postgres_url import AMBIGUOUS, is_ambiguous
from tap_audit_events.outputs.state_file import StateFile

FOLDER: Final = "/"
TABLE: Final = "audit_events"

_ONLY_POSTGRES: Final = "--table names a table of PostgreSQL"


class Opened(NamedTuple):
    """An output of an export.

    Attributes:
        output: the output.
        name: what messages call it; contains no password.
        extends: whether new events are added to it; else it is replaced.
        unfinished: what is true of it after an error while it was written, if not the usual.
    """

    output: Output
    name: str
    extends: bool
    unfinished: str = ""


@contextmanager
def open_output(
    to: str, table: str | None, state_path: Path | None, form: Form = AS_SENT
) -> Iterator[Opened]:
    """The output that `--to` names. Within the ``with`` block, no other run may write it.

    Args:
        to: a path or a URL; how it begins or ends selects the kind.
        table: the table of a database, None for the usual one.
        state_path: the state file, if any.
        form: the form of the events.

    Raises:
        SettingsError: the output or its state file cannot be used, another run is writing to one of
            them, or a library that the output needs is not installed.
        OutputError: the system refuses one of them.
    """
    if prefix := next((each for each in TABLES if to.lower().startswith(each)), None):
        kind = TABLES[prefix]
        if state_path is not None:
            problem = f"--state is for files: {kind.meaning} keeps its state itself"
            raise unusable(f"{problem}. Leave it out")
        if table is not None and not kind.is_named:
            raise unusable(f"{_ONLY_POSTGRES}: leave it out for {kind.meaning}")
        yield kind.new(to, table, form)
        return
    if table is not None:
        raise unusable(f"{_ONLY_POSTGRES}: leave it out for a file")
    ending = form_of(to)
    path = resolved(Path(to))
    if ending != FOLDER:
        check_is_file(path)
    state_file = None
    if state_path is not None:
        check_is_file(state_path)
        check_files_differ({"--to": path, "--state": state_path})
        state_file = StateFile(resolved(state_path), path)
    with ExitStack() as locks:
        if state_file is not None:
            locks.enter_context(locked(state_file.path))
        if state_file is None or ending != FOLDER:  # several runs may add to one folder
            locks.enter_context(locked(path))
        output = FORMATS[ending].new(path, state_file, form)
        yield Opened(output, to, extends=state_path is not None)


def form_of(text: str) -> str:
    """The key of `FORMATS` for a path; an existing folder needs no slash at its end.

    Raises:
        SettingsError: it is a URL, or the suffix is unknown.
    """
    if "://" in text:  # not shown: a password may be in it
        problem = "--to must be a path, or a URL that begins with one of"
        raise unusable(f"{problem} {', '.join(TABLES)}; to send events, use audit-events ship")
    if text.endswith(FOLDER) or os.path.isdir(text):  # noqa: PTH112 - no error for any text
        return FOLDER
    for suffix in sorted(FORMATS, key=len, reverse=True):
        if text.endswith(suffix) and len(Path(text).name) > len(suffix):
            return suffix
    known = ", ".join(f"{form} ({each.meaning})" for form, each in FORMATS.items())
    given = "--to" if "@" in text else f"--to {sanitize(text)}"  # it may be an incomplete URL
    problem = f"{given} has no known format: end it with a name and one of {known}"
    raise unusable(f"{problem}; or name a table, beginning with one of {', '.join(TABLES)}")


class Format(NamedTuple):
    """A kind of file: what it is, and what opens it: its path, its state file, and the form."""

    meaning: str
    new: Callable[[Path, StateFile | None, Form], Output]


class Table(NamedTuple):
    """A kind of table that keeps its state itself, so that each export adds what is new.

    Attributes:
        meaning: what it is.
        new: opens the table that `--to` and `--table` name, for a form of events.
        is_named: whether it accepts `--table`.
    """

    meaning: str
    new: Callable[[str, str | None, Form], Opened]
    is_named: bool = False


def _postgres_table(url: str, table: str | None, form: Form) -> Opened:
    if is_ambiguous(url):
        raise unusable(f"--to cannot be used: {AMBIGUOUS}")
    from tap_audit_events.outputs.postgres_table import PostgresTable

    name = TABLE if table is None else table
    return Opened(PostgresTable(url, name, form), name, extends=True)


def _delta_table(to: str, _: str | None, form: Form) -> Opened:
    from tap_audit_events.outputs.delta_table import DeltaTable

    return Opened(DeltaTable(to, form), to, extends=True)


def _iceberg_table(to: str, _table: str | None, form: Form) -> Opened:
    import tap_audit_events.outputs.iceberg_catalog  # noqa: F401 - says what to install
    from tap_audit_events.outputs.iceberg_table import IcebergTable

    return Opened(IcebergTable(to, form), to, extends=True)


def _parquet_file(path: Path, state_file: StateFile | None, form: Form) -> Output:
    import tap_audit_events.api.arrow  # noqa: F401 - says what to install if it is missing
    from tap_audit_events.outputs.parquet_file import ParquetWriter
    from tap_audit_events.outputs.single_file import SingleFile

    return SingleFile(path, partial(ParquetWriter, form=form), state_file)


def _duckdb_table(path: Path, state_file: StateFile | None, form: Form) -> Output:
    from tap_audit_events.outputs.duckdb_table import DuckDBTable

    return DuckDBTable(path, state_file, form)


def _json_lines(
    path: Path, state_file: StateFile | None, form: Form, *, compressed: bool = False
) -> Output:
    from tap_audit_events.outputs.lines_file import LinesWriter, json_lines
    from tap_audit_events.outputs.single_file import SingleFile

    lines = partial(json_lines, form=form)
    return SingleFile(path, partial(LinesWriter, lines=lines, compressed=compressed), state_file)


def _csv(
    path: Path, state_file: StateFile | None, form: Form, *, compressed: bool = False
) -> Output:
    from tap_audit_events.outputs.csv_file import csv_header, csv_lines
    from tap_audit_events.outputs.lines_file import LinesWriter
    from tap_audit_events.outputs.single_file import SingleFile

    lines, header = partial(csv_lines, form=form), csv_header(form)
    new_writer = partial(LinesWriter, lines=lines, header=header, compressed=compressed)
    return SingleFile(path, new_writer, state_file)


def _folder(path: Path, state_file: StateFile | None, form: Form) -> Output:
    import tap_audit_events.api.arrow  # noqa: F401 - says what to install if it is missing
    from tap_audit_events.outputs.day_folder import GrowingFolder, NewFolder

    if state_file is None:
        return NewFolder(path, form)
    return GrowingFolder(path, state_file, form)


FORMATS: Final = {
    ".parquet": Format("one Parquet file", _parquet_file),
    ".duckdb": Format("the table audit_events of a DuckDB file", _duckdb_table),
    ".jsonl": Format("JSON Lines: one event per line, as the service sent it", _json_lines),
    ".jsonl.gz": Format("JSON Lines, compressed", partial(_json_lines, compressed=True)),
    ".csv": Format("CSV: one event per line, for spreadsheets", _csv),
    ".csv.gz": Format("CSV, compressed", partial(_csv, compressed=True)),
    FOLDER: Format("a folder of Parquet files, a subfolder for each UTC day", _folder),
}
"""The kinds of file, by the end of the path that selects each."""

TABLES: Final = {
    "postgresql://": Table("a table of PostgreSQL", _postgres_table, is_named=True),
    "postgres://": Table("a table of PostgreSQL", _postgres_table, is_named=True),
    "delta:": Table("a Delta table", _delta_table),
    "iceberg:": Table("a table of Iceberg", _iceberg_table),
}
"""The kinds of table, by the start of the text that selects each, in lower case."""
