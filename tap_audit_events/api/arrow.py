"""Events as Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tap_audit_events.api.columns import COLUMNS, OCCURRED_AT, ORGANIZATION_ID, columns_of
from tap_audit_events.errors.exceptions import missing_extra
from tap_audit_events.events.exact_json import JsonText
from tap_audit_events.events.instants import Instant

try:
    import pyarrow as pa
except ImportError:
    raise missing_extra("pyarrow", "arrow") from None

_NOT_NULL: Final = frozenset({ORGANIZATION_ID, "id", OCCURRED_AT, "occurred_at_text"})
_TIME: Final = pa.timestamp("us", "UTC")

SCHEMA: Final[pa.Schema] = pa.schema(
    pa.field(
        name,
        _TIME if name == OCCURRED_AT else pa.string(),
        nullable=name not in _NOT_NULL,
        metadata={"field": ".".join(path)} if path else None,
    )
    for name, path in COLUMNS.items()
)
"""The schema of every record batch; `columns_of` says what is in each column."""


def record_batch(
    texts: Sequence[JsonText], instants: Sequence[Instant], organization_id: str
) -> pa.RecordBatch:
    """The record batch of some events of an organization.

    Raises:
        ContractError: an event is nested too deeply to be read.
    """
    columns = columns_of(texts, instants, organization_id)
    arrays = [pa.array(values, pa.string()) for values in columns.values()]
    arrays = [
        array.cast(pa.timestamp("us")).cast(_TIME) if field.type == _TIME else array
        for array, field in zip(arrays, SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def reader_of(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatchReader:
    """A reader that requests each record batch only when it is read."""
    return pa.RecordBatchReader.from_batches(SCHEMA, batches)
