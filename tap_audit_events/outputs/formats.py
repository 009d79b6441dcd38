"""Chooses the output for a path: the suffix decides the format."""

# ruff: noqa: PLC0415 - a format's libraries are imported if it is used

from __future__ import annotations

import os
from functools import partial
from logging import Logger
from pathlib import Path
from typing import Final

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.outputs.durable import unusable
from tap_audit_events.outputs.output import Output
from tap_audit_events.outputs.state_file import StateFile

FORMATS: Final = {
    ".parquet": "one Parquet file",
    ".duckdb": "the table audit_events of a DuckDB file",
    ".jsonl": "JSON Lines: one event per line, as the service sent it",
    ".jsonl.gz": "JSON Lines, compressed",
    "/": "a folder of Parquet files, a subfolder for each UTC day",
}
"""The ends of paths, and the format that each selects."""


def format_of(text: str) -> str:
    """The key of `FORMATS` for a path; an existing folder needs no slash at its end.

    Raises:
        SettingsError: it is a URL, or the suffix is unknown.
    """
    if "://" in text:  # not shown: a password may be in it
        raise unusable("--to must be a path, not a URL: an export writes to this machine only")
    if text.endswith("/") or os.path.isdir(text):  # noqa: PTH112 - no error for any text
        return "/"
    for suffix in sorted(FORMATS, key=len, reverse=True):
        if text.endswith(suffix) and len(Path(text).name) > len(suffix):
            return suffix
    known = ", ".join(f"{suffix} ({meaning})" for suffix, meaning in FORMATS.items())
    raise unusable(
        f"--to {sanitize(text)} has no known format: end it with a name and one of {known}"
    )


def open_output(format_: str, path: Path, state_file: StateFile | None, logger: Logger) -> Output:
    """The output of a format.

    Raises:
        SettingsError: a library that it needs is not installed.
    """
    if format_ in {"/", ".parquet"}:
        import tap_audit_events.api.arrow  # noqa: F401 - says what to install if it is missing
    if format_ == "/":
        from tap_audit_events.outputs.day_folder import GrowingFolder, NewFolder

        if state_file is None:
            return NewFolder(path)
        return GrowingFolder(path, state_file=state_file, logger=logger)
    if format_ == ".duckdb":
        from tap_audit_events.outputs.duckdb_table import DuckDBTable

        return DuckDBTable(path, state_file=state_file, logger=logger)
    from tap_audit_events.outputs.single_file import NewWriter, SingleFile

    new_writer: NewWriter
    if format_ == ".parquet":
        from tap_audit_events.outputs.parquet_file import ParquetWriter

        new_writer = ParquetWriter
    else:
        from tap_audit_events.outputs.json_lines import JsonLinesWriter

        new_writer = partial(JsonLinesWriter, compressed=format_ == ".jsonl.gz")
    return SingleFile(path, new_writer, state_file=state_file, logger=logger)
