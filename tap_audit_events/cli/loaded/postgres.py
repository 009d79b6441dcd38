"""Tables of a PostgreSQL database, read in a transaction that cannot write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tap_audit_events.cli.loaded.columns import Columns, find_columns, quoted
from tap_audit_events.cli.loaded.row import BATCH_ROWS, Range, Row, unreadable
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.errors.redaction import register_secret

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    raise SettingsError(
        ["psycopg is not installed: install the package with it, tap-audit-events[postgres]"],
        "AE-EXTRA",
    ) from None

URL_SCHEMES: Final = ("postgresql://", "postgres://")
CONNECT_SECONDS: Final = 30

_TYPES_SQL: Final = """
SELECT attname, format_type(atttypid, atttypmod)
FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""


class PostgresDatabase:
    """A connection to a database.

    Args:
        url: its URL. The password may be in it, in ``PGPASSWORD`` or in a password file.

    Raises:
        OutputError: the server cannot be reached, or refuses the connection.
    """

    engine = "postgresql"

    def __init__(self, url: str) -> None:
        self.name = "PostgreSQL"
        try:
            given = conninfo_to_dict(url)
        except psycopg.Error:  # its text may contain the password
            raise unreadable(self.name, "the URL is not as libpq expects it") from None
        register_secret(str(given.get("password") or ""))
        self.name = sanitize(
            f"PostgreSQL at {given.get('host') or 'localhost'}, {given.get('dbname') or 'default'}"
        )
        given.setdefault("connect_timeout", CONNECT_SECONDS)
        with self._errors():
            self._connection = psycopg.connect(
                **{name: str(value) for name, value in given.items()},
                options="-c default_transaction_read_only=on -c timezone=UTC -c datestyle=ISO",
            )

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def types(self, table: str) -> dict[str, str]:
        """The type of each column of a table, by its name.

        Raises:
            OutputError: there is no such table.
        """
        with self._errors():
            rows = self._connection.execute(_TYPES_SQL, [quoted(table)]).fetchall()
        if not rows:
            raise unreadable(self.name, f"it has no table {sanitize(table)} that may be read")
        return dict(rows)

    def query(
        self, sql: str, parameters: Sequence[object] = ()
    ) -> Iterator[Sequence[tuple[Any, ...]]]:
        """The rows of a query, some at a time."""
        with self._errors(), self._connection.cursor("audit_events_rows") as cursor:
            cursor.execute(sql.encode(), parameters or None)
            while batch := cursor.fetchmany(BATCH_ROWS):
                yield batch

    def time_as_text(self, column: str, columns: Columns) -> str:
        """An expression for a time as text in UTC."""
        if not columns.is_time:
            return f"CAST({quoted(column)} AS text)"
        return f"to_char({quoted(column)}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US')"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            reason = error.diag.message_primary or str(error)
            raise unreadable(self.name, sanitize(reason)) from None


class PostgresRows:
    """The events in a table of a database.

    Args:
        database: the database.
        table: the table, perhaps with its schema before a dot.
    """

    def __init__(self, database: PostgresDatabase, table: str) -> None:
        self.name = f"{database.name}, table {sanitize(table)}"
        self._database = database
        self._table = table
        self._columns = find_columns(database.types(table), self.name)

    @property
    def has_organizations(self) -> bool:
        return self._columns.organization is not None

    @property
    def unit_nanoseconds(self) -> int:
        return self._columns.unit_nanoseconds

    def rows(self, within: Range) -> Iterator[Sequence[Row]]:
        columns = self._columns
        organization = "NULL" if columns.organization is None else quoted(columns.organization)
        time = self._database.time_as_text(columns.time, columns)
        sql = (
            f"SELECT CAST({organization} AS text), CAST({quoted(columns.id)} AS text), {time}"  # noqa: S608 - quoted
            f" FROM {quoted(self._table)}"
        )
        bounds: list[str] = []
        if columns.is_time:
            wide = within.widened(max(columns.unit_nanoseconds, 1))
            bounds = [f"{wide.start}Z", f"{wide.end}Z"]
            sql += (
                f" WHERE {quoted(columns.time)} BETWEEN %s AND %s OR {quoted(columns.time)} IS NULL"
            )
            sql = sql.replace("%s", f"CAST(%s AS {columns.time_type})")
        for batch in self._database.query(sql, bounds):
            yield [Row(*row) for row in batch]
