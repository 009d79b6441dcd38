"""The table of events in PostgreSQL and the table of its states: found, created and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, LiteralString, NamedTuple

import psycopg
import pyarrow as pa
from psycopg import errors, sql

from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.outputs.durable import unusable
from tap_audit_events.outputs.form import OCSF

STATE_TABLE: Final = "audit_events_state"
KEY: Final = ("organization_id", "id")
JSON_COLUMNS: Final = ("action_details", "other_fields", OCSF)

REFUSED: Final = "refused_json"
"""The last column, for JSON that `jsonb` refuses: an object of the JSON columns, as text."""

_FIND: Final = """
SELECT nspname, relname
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE pg_class.oid = to_regclass(%s)
"""

_COLUMNS_OF: Final = """
SELECT attname, format_type(atttypid, atttypmod),
    attnotnull AND NOT atthasdef AND attidentity = ''
FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""
"""Name, type, and whether each row needs a value."""

_KEYS_OF: Final = """
SELECT array_agg(attname::text)
FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey::smallint[])
WHERE indrelid = to_regclass(%s)
    AND indisunique AND indimmediate AND indisvalid AND indpred IS NULL AND indexprs IS NULL
GROUP BY indexrelid
"""
"""The columns of each unique index that can decide a conflict."""


class Tables(NamedTuple):
    """The names of both tables.

    Attributes:
        schema: their schema.
        table: the name of the table of events.
        is_new: whether the table was created just now.
    """

    schema: str
    table: str
    is_new: bool

    @property
    def events(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.table)

    @property
    def states(self) -> sql.Identifier:
        return sql.Identifier(self.schema, STATE_TABLE)


def parts_of(table: str) -> list[str]:
    """The schema, if there is one, and the name of a table.

    Raises:
        SettingsError: a text is no such name.
    """
    parts = table.split(".")
    if not all(parts) or len(parts) > 2 or parts[-1] == STATE_TABLE:
        raise unusable(
            f"--table {sanitize(table)} cannot be used: name a table, such as audit_events or"
            f" raw.audit_events, other than {STATE_TABLE}"
        )
    return parts


def columns_of(schema: pa.Schema) -> pa.Schema:
    """The columns of the table of events."""
    return schema.append(pa.field(REFUSED, pa.string()))


def open_tables(
    connection: psycopg.Connection[Any], parts: list[str], columns: pa.Schema
) -> Tables:
    """Find the table of events and the table of states next to it; create what is missing.

    Raises:
        psycopg.Error: there is no such schema, or a right is missing.
        SettingsError: the table of events has other columns or another key.
    """
    try:
        tables = _open(connection, parts, columns)
    except (errors.UniqueViolation, errors.DuplicateTable):  # another export creates them, too
        connection.rollback()
        tables = _open(connection, parts, columns)
    connection.commit()
    _check(connection, tables, columns)
    return tables


def identifiers(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _open(connection: psycopg.Connection[Any], parts: list[str], columns: pa.Schema) -> Tables:
    name = sql.Identifier(*parts)
    is_new = _found(connection, name) is None
    if is_new:
        definitions = sql.SQL(", ").join(
            sql.SQL("{} {} {}").format(
                sql.Identifier(field.name),
                sql.SQL(_type_of(field)),
                sql.SQL("" if field.nullable else "NOT NULL"),
            )
            for field in columns
        )
        connection.execute(
            sql.SQL("CREATE TABLE {} ({}, PRIMARY KEY ({}))").format(
                name, definitions, identifiers(KEY)
            )
        )
    schema, table = _found(connection, name) or ("", "")
    tables = Tables(schema, table, is_new)
    if _found(connection, tables.states) is None:
        connection.execute(
            sql.SQL(
                "CREATE TABLE {} (table_name text, organization_id text, state jsonb NOT NULL,"
                " PRIMARY KEY (table_name, organization_id))"
            ).format(tables.states)
        )
    return tables


def _found(connection: psycopg.Connection[Any], name: sql.Identifier) -> tuple[str, str] | None:
    """The schema and the name of a table; None if there is no such table."""
    row: tuple[str, str] | None = connection.execute(_FIND, [name.as_string(connection)]).fetchone()
    return row


def _check(connection: psycopg.Connection[Any], tables: Tables, columns: pa.Schema) -> None:
    problems = "; ".join(_problems(connection, tables.events.as_string(connection), columns))
    if problems:
        raise _other_table(f"{tables.schema}.{tables.table}", problems)
    encoding = connection.execute("SHOW server_encoding").fetchone()
    if encoding != ("UTF8",):
        raise unusable(
            f"The database has the encoding {sanitize(encoding and encoding[0])}, which cannot"
            " store each character: export into a database with the encoding UTF8"
        )


def _problems(connection: psycopg.Connection[Any], table: str, columns: pa.Schema) -> Iterator[str]:
    """What is different from a table that an export creates; more columns may have a default."""
    found = {
        name: (type_, is_required)
        for name, type_, is_required in connection.execute(_COLUMNS_OF, [table]).fetchall()
    }
    if missing := [name for name in columns.names if name not in found]:
        yield f"there is no {', '.join(missing)}"
    for field in columns:
        type_, _ = found.pop(field.name, (_type_of(field), False))
        if type_ != _type_of(field):
            yield f"{field.name} is {type_}, but must be {_type_of(field)}"
    for name, (_, is_required) in found.items():
        if is_required:
            yield f"{sanitize(name)} must have a default or be nullable"
    keys = [set(names) for (names,) in connection.execute(_KEYS_OF, [table]).fetchall()]
    if set(KEY) not in keys:
        yield f"the primary key must be ({', '.join(KEY)})"


def _other_table(table: str, problems: str) -> SettingsError:
    return unusable(
        f"The table {sanitize(table)} is not as an export needs it: {problems}. Change that, or"
        " name another table with --table: it is created"
    )


def _type_of(field: pa.Field) -> LiteralString:
    if pa.types.is_timestamp(field.type):
        return "timestamp with time zone"
    return "jsonb" if field.name in JSON_COLUMNS else "text"
