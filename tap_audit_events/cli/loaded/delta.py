"""The events in a Delta table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from tap_audit_events.cli.loaded.batches import Loaded, Range, texts_of, unreadable
from tap_audit_events.cli.loaded.columns import find_columns
from tap_audit_events.errors.exceptions import AuditEventsError, missing_extra
from tap_audit_events.outputs.delta_errors import reason_of, register_secrets
from tap_audit_events.outputs.delta_place import Place

try:
    import deltalake
except ImportError as error:
    raise missing_extra(error.name or "deltalake", "delta") from None

_MICROSECOND = 1_000
_DAYS = "occurred_at"
"""The column of which the log says which times are in each file."""


def loaded_delta(place: Place, name: str) -> Loaded:
    """The events in a table.

    Args:
        place: where it is.
        name: what messages call it.

    Raises:
        OutputError: there is no such table, or it lacks a column or has one of another type.
    """
    register_secrets()
    with _errors(name):
        table = deltalake.DeltaTable(place.uri, storage_options=place.options)
        dataset = table.to_pyarrow_dataset()
    types = {each.name: str(getattr(each.type, "type", "")) for each in table.schema().fields}
    columns = find_columns(types, name)
    names = (columns.organization, columns.id, columns.time.name)

    def batches(within: Range) -> Iterator[pa.Table]:
        with _errors(name):
            scanner = dataset.scanner(
                columns=list(filter(None, names)),
                filter=_condition(within) if types.get(_DAYS) == "timestamp" else None,
                batch_readahead=1,
                fragment_readahead=1,
            )
            for rows in scanner.to_batches():
                yield texts_of(rows, names)

    return Loaded(
        name,
        columns.time.unit_nanoseconds,
        batches,
        columns=types.keys,
        has_organizations=columns.organization is not None,
    )


def _condition(within: Range) -> pc.Expression:
    """A condition that is true for all rows of a range, and perhaps for others."""
    wide = within.widened(_MICROSECOND)
    start, end = (
        datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (wide.start, wide.end)
    )
    time = pc.field(_DAYS)
    return time.is_null() | ((time >= start) & (time <= end))


@contextmanager
def _errors(name: str) -> Iterator[None]:
    try:
        yield
    except AuditEventsError:
        raise
    except Exception as error:  # noqa: BLE001 - the library has several
        raise unreadable(name, reason_of(error)) from None
