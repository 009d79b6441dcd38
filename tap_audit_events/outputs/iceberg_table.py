"""An export into a table of Iceberg, together with its state.

The state is in properties of the table, and is committed together with the events, in parts. So
there is no state file, and a run that is killed at any moment continues where its last part ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.transforms import DayTransform
from pyiceberg.types import NestedField, StringType, TimestamptzType

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.api.record_batches import RecordBatches
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OutputError,
    SettingsError,
    sanitize,
)
from tap_audit_events.outputs.durable import unusable
from tap_audit_events.outputs.form import AS_SENT, Form
from tap_audit_events.outputs.iceberg_catalog import (
    load_catalog,
    mask_secrets,
    reason_of,
    table_name,
)
from tap_audit_events.outputs.output import Output

PART_BYTES: Final = 32_000_000
"""If the events in memory take so much, a part is committed."""

STATE: Final = "audit-events.state."
"""The start of the properties with the states; the id of the organization follows."""

LAST_SNAPSHOT: Final = "audit-events.snapshot-id"
"""The property with the id of the snapshot that was committed together with the states."""

_TIME: Final = "occurred_at"
_NEW: Final = {"write.metadata.delete-after-commit.enabled": "true"}
"""Properties of a new table. Without it, each commit would leave a file of metadata for ever."""


class IcebergTable(Output):
    """A table of Iceberg.

    Args:
        to: ``iceberg:CATALOG/namespace.table``.
        form: the form of the events.

    Raises:
        OutputError: the text has another form.
    """

    def __init__(self, to: str, form: Form = AS_SENT) -> None:
        self._form = form
        self._columns = _columns_of(form)
        self._name = sanitize(to)
        with self._errors():
            self._catalog, self._identifier = table_name(to)
        self._table: _ExportTable | None = None
        self._batches = RecordBatches(form.schema)
        self._has_pages = False

    @property
    def is_part_complete(self) -> bool:
        return self._batches.rows >= self.PART_EVENTS or self._batches.bytes >= PART_BYTES

    def begin(self) -> Mapping[str, Any]:
        with self._errors():
            table = self._opened(load_catalog(self._catalog))
            mask_secrets({**table.config, **table.io.properties})
            self._check_columns(table.schema())
            properties = table.properties
            states = [json.loads(properties[name]) for name in properties if name.startswith(STATE)]
            self._check_history(table, has_state=bool(states))
            self._table = _ExportTable(table)
        return {"organizations": states} if states else {}

    def write(self, page: EventPage) -> None:
        self._batches.add(self._form.rows(page))
        self._has_pages = True

    def commit(self, state: Mapping[str, Any] | None) -> None:
        if not self._has_pages:
            return
        assert self._table is not None, "begin() was not called"  # noqa: S101
        assert state is not None, "there are pages"  # noqa: S101
        with self._errors():
            transaction = self._table.transaction()
            transaction.append(self._batches.take())
            snapshot = str(transaction.table_metadata.current_snapshot_id)
            self._table.expected.add(snapshot)
            states = {
                STATE + each["organization_id"].lower(): json.dumps(each)
                for each in state.get("organizations", [state])
            }
            transaction.set_properties({**states, LAST_SNAPSHOT: snapshot})
            transaction.commit_transaction()
            self._table.expected = {snapshot}
            self._has_pages = False

    def discard(self) -> None:
        self._batches.clear()

    # The table

    def _opened(self, catalog: Catalog) -> Table:
        """The table, which is created if there is none."""
        with suppress(NoSuchTableError):
            return catalog.load_table(self._identifier)
        with suppress(NoSuchNamespaceError):
            return self._created(catalog)
        with suppress(NamespaceAlreadyExistsError):  # created by another export, just now
            catalog.create_namespace(self._identifier[:-1])
        return self._created(catalog)

    def _created(self, catalog: Catalog) -> Table:
        try:
            return catalog.create_table(
                self._identifier,
                self._columns,
                partition_spec=_by_day(self._columns),
                properties=_NEW,
            )
        except TableAlreadyExistsError:  # created by another export, just now
            return catalog.load_table(self._identifier)

    def _check_columns(self, schema: Schema) -> None:
        if problems := "; ".join(_problems(schema, self._columns)):
            raise unusable(
                f"The table {self._name} is not as an export needs it: {problems}. Change that, or"
                " name another table: it is created"
            )

    def _check_history(self, table: Table, *, has_state: bool) -> None:
        """Check that the events of the states are in the table.

        The snapshot of the last export may have expired, but it must not have been rolled back.
        """
        current = table.current_snapshot()
        if not has_state:
            if current and current.summary and current.summary.get("total-records") != "0":
                raise unusable(
                    f"The table {self._name} has rows, but not the state of an export, so it is not"
                    " known which events are new: name another table, which is created"
                )
            return
        last = table.properties.get(LAST_SNAPSHOT, "")
        ancestors = {str(each.snapshot_id) for each in ancestors_of(current, table.metadata)}
        kept = {str(each.snapshot_id) for each in table.snapshots()}
        if last in kept - ancestors or current is None:
            raise unusable(
                f"The table {self._name} was rolled back to a snapshot before the last export, or"
                " replaced, so it is not known which events are missing: set its current snapshot"
                f" to {last}, or name another table, which is created"
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except AuditEventsError:
            raise
        except _OtherExportError:
            problem = f"Another run has written to {self._name} in the meantime"
            next_step = "wait until it has ended, or end it, and run the export again"
            raise SettingsError([f"{problem}: {next_step}"], "AE-BUSY") from None
        except Exception as error:  # noqa: BLE001 - each catalog and file system has its own
            raise OutputError(f"{self._name}: {reason_of(error)}", "AE-EXPORT") from None


class _OtherExportError(CommitFailedException):
    """Another export has committed events since this one began."""


class _ExportTable(Table):
    """A table whose commits fail if another export has written to it.

    PyIceberg retries a commit if the table was changed meanwhile, and refreshes the table before.
    That is right after a change by another program, for example a compaction. After one by another
    export, the same events would be there twice.

    Attributes:
        expected: the values that the property `LAST_SNAPSHOT` may have.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(
            table.name(), table.metadata, table.metadata_location, table.io, table.catalog,
            table.config,
        )  # fmt: skip
        self.expected = {table.properties.get(LAST_SNAPSHOT)}

    def refresh(self) -> Table:
        super().refresh()
        if self.properties.get(LAST_SNAPSHOT) not in self.expected:
            raise _OtherExportError
        return self


def _columns_of(form: Form) -> Schema:
    return Schema(
        *(
            NestedField(
                number,
                field.name,
                TimestamptzType() if field.name == _TIME else StringType(),
                required=not field.nullable,
            )
            for number, field in enumerate(form.schema, 1)
        )
    )


def _by_day(columns: Schema) -> PartitionSpec:
    source = columns.find_field(_TIME).field_id
    return PartitionSpec(PartitionField(source, 1000, DayTransform(), f"{_TIME}_day"))


def _problems(schema: Schema, columns: Schema) -> Iterator[str]:
    """What is different from a table that an export creates; more columns may be optional."""
    found = {field.name: field for field in schema.fields}
    if missing := [name for name in columns.column_names if name not in found]:
        yield f"there is no {', '.join(missing)}"
    for wanted in columns.fields:
        field = found.pop(wanted.name, wanted)
        if field.field_type != wanted.field_type:
            yield f"{wanted.name} is {field.field_type}, but must be {wanted.field_type}"
        if field.required and not wanted.required:
            yield f"{wanted.name} must be optional"
    for name, field in found.items():
        if field.required:
            yield f"{sanitize(name)} must be optional"
