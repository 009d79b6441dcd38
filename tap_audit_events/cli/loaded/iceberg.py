"""The events in a table of Iceberg, read file by file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.types import TimestamptzType

from tap_audit_events.cli.loaded.batches import Loaded, Range, texts_of, unreadable
from tap_audit_events.cli.loaded.columns import find_columns
from tap_audit_events.errors.exceptions import AuditEventsError, sanitize
from tap_audit_events.outputs.iceberg_catalog import (
    load_catalog,
    mask_secrets,
    reason_of,
    table_name,
)

_MICROSECOND = 1_000
_DAYS = "occurred_at"
"""The column by which the table of an export is partitioned."""


def loaded_iceberg(text: str) -> Loaded:
    """The events in a table.

    Args:
        text: ``iceberg:CATALOG/namespace.table``.

    Raises:
        OutputError: there is no such table, or it lacks a column or has one of another type.
    """
    name = sanitize(text)
    with _errors(name):
        catalog, identifier = table_name(text)
        table = load_catalog(catalog).load_table(identifier)
        mask_secrets({**table.config, **table.io.properties})
    types = {field.name: str(field.field_type) for field in table.schema().fields}
    columns = find_columns(types, name)
    names = (columns.organization, columns.id, columns.time.name)
    has_days = types.get(_DAYS) == str(TimestamptzType())

    def batches(within: Range) -> Iterator[pa.Table]:
        with _errors(name):
            scan = table.scan(selected_fields=tuple(filter(None, names)))
            if has_days:
                scan = scan.filter(_condition(within))
            for file in scan.plan_files():  # a scan would read all files ahead
                reader = ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter)
                for rows in reader.to_record_batches([file]):
                    yield texts_of(rows, names)

    return Loaded(
        name,
        columns.time.unit_nanoseconds,
        batches,
        columns=types.keys,
        has_organizations=columns.organization is not None,
    )


def _condition(within: Range) -> str:
    """A condition that is true for all rows of a range, and perhaps for others."""
    wide = within.widened(_MICROSECOND)
    between = f"{_DAYS} >= '{wide.start}+00:00' AND {_DAYS} <= '{wide.end}+00:00'"
    return f"{_DAYS} IS NULL OR ({between})"


@contextmanager
def _errors(name: str) -> Iterator[None]:
    try:
        yield
    except AuditEventsError:
        raise
    except Exception as error:  # noqa: BLE001 - each catalog and file system has its own
        raise unreadable(name, reason_of(error)) from None
