"""Tables of a PostgreSQL database, read in a transaction that cannot write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tap_audit_events.cli.loaded.columns import TimeColumn, quoted
from tap_audit_events.cli.loaded.row import BATCH_ROWS, Range, unreadable
from tap_audit_events.errors.exceptions import missing_extra, sanitize
from tap_audit_events.errors.redaction import register_secret

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    raise missing_extra("psycopg", "postgres") from None

CONNECT_SECONDS: Final = 30

_OPTIONS: Final = "-c default_transaction_read_only=on -c timezone=UTC -c datestyle=ISO"
_PORTS: Final = re.compile(r"[0-9,]*")

_TYPES_SQL: Final = """
SELECT attname, format_type(atttypid, atttypmod)
FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""


class PostgresDatabase:
    """A connection to a database.

    Args:
        url: its URL, with a scheme in lower case. The password may be in it, in ``PGPASSWORD`` or
            in a password file.

    Raises:
        OutputError: the URL is wrong, or the server cannot be reached or refuses the connection.
    """

    def __init__(self, url: str) -> None:
        self.name = "PostgreSQL"
        try:
            given = conninfo_to_dict(url)
        except psycopg.Error:  # its text may contain the password
            raise unreadable(self.name, "the URL is not as libpq expects it") from None
        register_secret(*(str(given.get(name) or "") for name in ("password", "sslpassword")))
        # If there is no host, what looks like the port may be a password.
        if not _PORTS.fullmatch(str(given.get("port") or "")):
            raise unreadable(self.name, "the port in the URL is not a number")
        self.name = sanitize(
            f"PostgreSQL at {given.get('host') or 'localhost'}, {given.get('dbname') or 'default'}"
        )
        given.setdefault("connect_timeout", CONNECT_SECONDS)
        options = f"{given.get('options') or ''} {_OPTIONS}"  # of two values, the last one counts
        with self._errors():
            self._connection = psycopg.connect(
                **{name: str(value) for name, value in given.items()} | {"options": options}
            )

    def close(self) -> None:
        self._connection.close()

    def types(self, table: str) -> dict[str, str]:
        with self._errors():
            rows = self._connection.execute(_TYPES_SQL, [quoted(table)]).fetchall()
        if not rows:
            raise unreadable(self.name, f"it has no table {sanitize(table)} that may be read")
        return dict(rows)

    def query(self, sql: str) -> Iterator[Sequence[tuple[Any, ...]]]:
        with self._errors(), self._connection.cursor("audit_events_rows") as cursor:
            cursor.execute(sql.encode())
            while batch := cursor.fetchmany(BATCH_ROWS):
                yield batch

    def time_as_text(self, column: TimeColumn) -> str:
        if not column.is_time:
            return f"CAST({quoted(column.name)} AS VARCHAR)"
        return f"to_char({quoted(column.name)}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US')"

    def condition(self, column: TimeColumn, within: Range) -> str:
        if not column.is_time:
            return "true"
        wide, time = within.widened(column.unit_nanoseconds), quoted(column.name)
        start, end = (f"CAST('{each}Z' AS {column.type})" for each in (wide.start, wide.end))
        return f"{time} BETWEEN {start} AND {end} OR {time} IS NULL"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            reason = error.diag.message_primary or str(error)
            raise unreadable(self.name, sanitize(reason)) from None
