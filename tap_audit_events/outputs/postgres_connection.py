"""A connection to PostgreSQL, as libpq makes it, and its errors as one line each."""

from __future__ import annotations

import os
import re
from typing import Any, Final

from tap_audit_events.errors.exceptions import OutputError, missing_extra, sanitize
from tap_audit_events.errors.redaction import register_secret

try:
    import psycopg
    from psycopg import errors
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError:
    raise missing_extra("psycopg", "postgres") from None

CONNECT_SECONDS: Final = 30

PostgresError: Final = psycopg.Error

_PORTS: Final = re.compile(r"[0-9,]*")
_SECRETS: Final = ("password", "sslpassword")

_CHECK_LOGIN: Final = (
    "check the host, the database and the user in the URL, the password in PGPASSWORD, ~/.pgpass or"
    " the service file, and that the server runs"
)
_NEXT_STEPS: Final[tuple[tuple[type[psycopg.Error], str], ...]] = (
    (errors.InvalidSchemaName, "create the schema, or name another one with --table"),
    (errors.InsufficientPrivilege, "grant the right to the user; docs/export.md lists all of them"),
    (errors.ReadOnlySqlTransaction, "connect to the primary server, as a user who may write"),
    (errors.DiskFull, "free space on the server"),
    (psycopg.OperationalError, "check that the server runs and can be reached"),
    (psycopg.InterfaceError, "check that the server runs and can be reached"),
)
"""What to do about errors of a statement; the first class that fits counts."""


def parameters_of(url: str) -> dict[str, Any]:
    """The parameters in a URL, whose passwords are masked from now on.

    Raises:
        ValueError: libpq does not accept the URL.
    """
    register_secret(os.environ.get("PGPASSWORD", ""))
    scheme, colon, rest = url.partition(":")
    try:
        given: dict[str, Any] = conninfo_to_dict(f"{scheme.lower()}{colon}{rest}")
    except psycopg.Error:  # its text may contain the password
        raise ValueError("the URL is not as libpq expects it") from None
    register_secret(*(str(given.get(name) or "") for name in _SECRETS))
    # If there is no host, what looks like the port may be a password.
    if not _PORTS.fullmatch(str(given.get("port") or "")):
        raise ValueError("the port in the URL is not a number")
    return given


def connect(given: dict[str, Any]) -> psycopg.Connection[Any]:
    """A new connection. What is not given is read from ``PG…``, ~/.pgpass and the service file.

    Raises:
        psycopg.Error: the server cannot be reached, or refuses the connection.
    """
    parameters = {"fallback_application_name": "audit-events"} | given
    if not os.environ.get("PGCONNECT_TIMEOUT"):
        parameters.setdefault("connect_timeout", CONNECT_SECONDS)
    # A connection pooler may give each transaction another connection, without what was prepared.
    return psycopg.connect(make_conninfo(**parameters), prepare_threshold=None)


def reason_of(error: psycopg.Error) -> str:
    """What the server or libpq says, on one line and without a secret."""
    return sanitize(error.diag.message_primary or " ".join(str(error).split()))


def failure(error: psycopg.Error, table: str, *, is_connected: bool) -> OutputError:
    """The error for an output, with the next step."""
    next_step = _CHECK_LOGIN
    if is_connected:
        next_step = next((text for kind, text in _NEXT_STEPS if isinstance(error, kind)), "")
    reason = f"the table {table}: PostgreSQL says {reason_of(error)}"
    return OutputError(f"{reason}: {next_step}" if next_step else reason, "AE-EXPORT")
