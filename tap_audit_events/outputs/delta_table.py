"""An export into a Delta table, on a disk or in an object store, together with its state.

The state is in the commit that adds the events. So there is no state file, nothing is renamed, and
a run that is killed at any moment continues where its last commit ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OutputError,
    SettingsError,
    missing_extra,
    sanitize,
)
from tap_audit_events.outputs.delta_place import place_of
from tap_audit_events.outputs.durable import unusable
from tap_audit_events.outputs.form import AS_SENT, Form
from tap_audit_events.outputs.output import Output

try:
    import deltalake
    import pyarrow as pa
    from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

    from tap_audit_events.api.record_batches import RecordBatches
    from tap_audit_events.outputs.delta_errors import reason_of, register_secrets
except ImportError as error:
    raise missing_extra(error.name or "deltalake", "delta") from None

_Result = TypeVar("_Result")

PART_BYTES: Final = 32_000_000
"""After so many bytes of values, a part is committed even if it has fewer events than others. It is
in memory until then."""

DAY: Final = pa.field("day", pa.date32(), nullable=False)
"""The last column, by which a table is partitioned: the UTC day of the event."""

APPLICATION: Final = "tap-audit-events"
"""The application of our transactions. Their version is that of the table, or lower if another
program has committed meanwhile. Of two runs with the same application, Delta refuses one."""

STATE: Final = "audit_events_state"
"""The name of the state in the information about a commit; it is JSON, as text."""

_PROPERTIES: Final = {
    # The log is where the state is, so that it must not expire while no events are added.
    "delta.logRetentionDuration": "interval 3650 days",
    # Otherwise the log would have two values of each column for each file.
    "delta.dataSkippingNumIndexedCols": "4",
}


class DeltaTable(Output):
    """A table that the first export creates.

    Args:
        to: ``delta:`` and a folder or the URL of an object store.
        form: the form of the events.

    Raises:
        SettingsError: the text has another form.
    """

    def __init__(self, to: str, form: Form = AS_SENT) -> None:
        self._form = form
        self._columns = form.schema.append(DAY)
        try:
            self._place = place_of(to)
        except ValueError as error:
            raise unusable(f"--to cannot be used: {error}") from None
        self._name = sanitize(to)
        self._table: deltalake.DeltaTable | None = None
        self._batches = RecordBatches(form.schema)
        self._has_pages = False

    @property
    def is_part_complete(self) -> bool:
        return self._batches.rows >= self.PART_EVENTS or self._batches.bytes >= PART_BYTES

    def begin(self) -> Mapping[str, Any]:
        register_secrets()
        with self._errors():
            try:
                self._table = self._opened()
            except TableNotFoundError:
                return {}
            state = self._state_of(self._table)
            if problems := "; ".join(_problems(self._table, self._columns)):
                raise unusable(
                    f"The table {self._name} is not as an export needs it: {problems}. Change that,"
                    " or name another folder: the table is created"
                )
            return state

    def write(self, page: EventPage) -> None:
        self._batches.add(self._form.rows(page))
        self._has_pages = True

    def commit(self, state: Mapping[str, Any] | None) -> None:
        if not self._has_pages:
            return
        with self._errors():
            version = 0 if self._table is None else self._table.version() + 1
            _interruptible(
                deltalake.write_deltalake,
                self._place.uri if self._table is None else self._table,
                self._taken(),
                mode="error" if self._table is None else "append",
                schema_mode=None if self._table is None else "merge",  # it may have more columns
                partition_by=[DAY.name],
                configuration=_PROPERTIES,
                storage_options=self._place.options,
                writer_properties=deltalake.WriterProperties(
                    compression="ZSTD", compression_level=1
                ),
                commit_properties=deltalake.CommitProperties(
                    custom_metadata={STATE: json.dumps(state)},
                    app_transactions=[deltalake.Transaction(APPLICATION, version)],
                    # A retry would add the events to a table that another run has just created.
                    max_commit_retries=0 if self._table is None else None,
                ),
            )
            self._has_pages = False
            if self._table is None:  # as this run has created it, so that it notices other runs
                self._table = self._opened(version)

    def discard(self) -> None:
        self._batches.clear()

    def _opened(self, version: int | None = None) -> deltalake.DeltaTable:
        options = self._place.options
        return _interruptible(
            deltalake.DeltaTable, self._place.uri, version, storage_options=options
        )

    def _state_of(self, table: deltalake.DeltaTable) -> Mapping[str, Any]:
        """The state in our newest commit; optimizing the table, for example, adds later ones."""
        version = table.transaction_version(APPLICATION)
        if version is None:
            raise unusable(
                f"The table {self._name} was not created by an export: name another folder"
            )
        commits = table.history(table.version() - version + 1)
        if any(_is_restore(commit) for commit in commits):
            commits = table.history()  # the version that was restored may be any earlier one
        reached = table.version()
        for commit in commits:
            if commit["version"] > reached:
                continue
            if STATE in commit:
                state: Mapping[str, Any] = json.loads(commit[STATE])
                return state
            if _is_restore(commit):
                reached = int(commit["operationParameters"].get("version") or -1)
        raise unusable(
            f"The table {self._name} has no state any more, so it is not known which events are"
            " new: it was restored by a time instead of a version, or the commit of the last export"
            " was removed from its log. Name another folder to export everything into a new table"
        )

    def _taken(self) -> pa.RecordBatchReader:
        """The rows with their day. Each batch is freed when it was read."""
        batches = list(self._batches)
        self._batches.clear()
        batches.reverse()

        def with_days() -> Iterator[pa.RecordBatch]:
            while batches:
                batch = batches.pop()
                yield batch.append_column(DAY, batch["occurred_at"].cast(DAY.type))

        return pa.RecordBatchReader.from_batches(self._columns, with_days())

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except AuditEventsError:
            raise
        except Exception as error:
            is_refused = isinstance(error, CommitFailedError) and "transaction" in str(error)
            is_created = isinstance(error, DeltaError) and "already exists" in str(error)
            if is_refused or is_created:
                problem = f"Another run is writing to {self._name}, and has committed first"
                raise SettingsError([f"{problem}. Run the export again"], "AE-BUSY") from error
            raise OutputError(f"{self._name}: {reason_of(error)}", "AE-EXPORT") from error


def _interruptible(call: Callable[..., _Result], *arguments: Any, **named: Any) -> _Result:
    """Call the library in a thread, as a signal cannot end its waits for an object store."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call, *arguments, **named).result()


def _is_restore(commit: Mapping[str, Any]) -> bool:
    return commit.get("operation") == "RESTORE"


def _problems(table: deltalake.DeltaTable, columns: pa.Schema) -> Iterator[str]:
    """What is different from a table that an export creates; more columns may be nullable."""
    found = {field.name: field for field in table.schema().fields}
    for needed in deltalake.Schema.from_arrow(columns).fields:
        field = found.pop(needed.name, None)
        if field is None:
            yield f"there is no {needed.name}"
        elif field.type != needed.type:
            yield f"{needed.name} is {_type_of(field)}, but must be {_type_of(needed)}"
    for field in found.values():
        if not field.nullable:
            yield f"{sanitize(field.name)} must be nullable"
    if table.metadata().partition_columns != [DAY.name]:
        yield f"it must be partitioned by {DAY.name}"


def _type_of(field: deltalake.Field) -> str:
    return sanitize(getattr(field.type, "type", field.type), 30)
