"""Tables of a PostgreSQL database, read in a transaction that cannot write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tap_audit_events.cli.loaded.batches import (
    BATCH_ROWS,
    NoTableError,
    Range,
    batch_of,
    unreadable,
)
from tap_audit_events.cli.loaded.columns import TimeColumn, quoted
from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.outputs.postgres_connection import (
    PostgresError,
    connect,
    parameters_of,
    reason_of,
)

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

_BEGIN: Final = """
SET TRANSACTION READ ONLY;
SET LOCAL timezone = 'UTC';
SET LOCAL datestyle = 'ISO'
"""
"""Statements, as a connection pooler may drop or refuse the options of a connection; only for this
transaction, as it may give the connection to others afterwards."""

_TYPES_SQL: Final = """
WITH RECURSIVE columns AS (
    SELECT attnum, attname, atttypid AS type, atttypmod AS modifier
    FROM pg_attribute
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attnum, attname, typbasetype, typtypmod
    FROM columns JOIN pg_type ON pg_type.oid = type
    WHERE typtype = 'd'
)
SELECT attname, format_type(type, modifier)
FROM columns JOIN pg_type ON pg_type.oid = type
WHERE typtype <> 'd'
ORDER BY attnum
"""
"""The type of each column; of a domain, the type that it is based on."""


@contextmanager
def postgres_database(url: str) -> Iterator[PostgresDatabase]:
    """A connection to a database.

    Args:
        url: its URL. The password may be in it, in ``PGPASSWORD`` or in a password file.

    Raises:
        OutputError: the URL is wrong, or the server cannot be reached or refuses the connection.
    """
    try:
        given = parameters_of(url)
    except ValueError as error:
        raise unreadable("PostgreSQL", error) from None
    host, name = given.get("host") or "localhost", given.get("dbname") or "default"
    place = sanitize(f"PostgreSQL at {host}, {name}")
    with _errors(place):
        connection = connect(given)
    with closing(connection):
        with _errors(place):
            connection.execute(_BEGIN)  # the transaction lasts until the connection is closed
        yield PostgresDatabase(place, connection)


@contextmanager
def _errors(name: str) -> Iterator[None]:
    try:
        yield
    except PostgresError as error:
        raise unreadable(name, reason_of(error)) from None


class PostgresDatabase:
    """A connection to a database, in a transaction."""

    def __init__(self, name: str, connection: psycopg.Connection[Any]) -> None:
        self.name = name
        self._connection = connection

    def types(self, table: str) -> dict[str, str]:
        with _errors(self.name):
            rows = self._connection.execute(_TYPES_SQL, [quoted(table)]).fetchall()
        if not rows:
            reason = f"it has no table {sanitize(table)} that may be read"
            raise NoTableError(self.name, reason)
        return dict(rows)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with _errors(self.name):
            return list(self._connection.execute(sql.encode()))

    def batches(self, sql: str) -> Iterator[pa.Table]:
        with (
            _errors(self.name),
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY ({sql}) TO STDOUT".encode()) as copy,
        ):
            rows = copy.rows()
            while batch := list(islice(rows, BATCH_ROWS)):
                yield batch_of(batch)

    def time_as_text(self, column: TimeColumn) -> str:
        if not column.is_time:
            return f"CAST({quoted(column.name)} AS VARCHAR)"
        return f"to_char({quoted(column.name)}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US')"

    def timestamp(self, column: TimeColumn) -> str:
        return f"CAST(CAST({quoted(column.name)} AS timestamptz) AS timestamp)"

    def condition(self, column: TimeColumn, within: Range) -> str:
        if not column.is_time:
            return "true"
        wide, time = within.widened(column.unit_nanoseconds), quoted(column.name)
        start, end = (f"CAST('{each}Z' AS {column.type})" for each in (wide.start, wide.end))
        return f"{time} BETWEEN {start} AND {end} OR {time} IS NULL"
