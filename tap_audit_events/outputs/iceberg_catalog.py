"""A catalog of Iceberg tables, as PyIceberg's own configuration names it, and its errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from tap_audit_events.errors.exceptions import missing_extra, sanitize
from tap_audit_events.errors.redaction import register_secret
from tap_audit_events.outputs.durable import unusable

PREFIX: Final = "iceberg:"

_UNREADABLE: Final = (
    "PyIceberg's configuration, .pyiceberg.yaml or the variables PYICEBERG_…, cannot be read:"
    " compare it with the examples in docs/export.md"
)

try:
    import pyarrow  # noqa: F401 - PyIceberg writes Parquet with it
    import pyiceberg_core  # noqa: F401 - PyIceberg assigns events to days with it
    from pyiceberg import catalog as catalogs
    from pyiceberg.utils.config import Config
except ImportError as error:
    raise missing_extra((error.name or "pyiceberg").replace("_", "-"), "iceberg") from None
except Exception:  # noqa: BLE001 - of several libraries; the text may quote a secret
    raise unusable(_UNREADABLE) from None

_SECRET: Final = re.compile(
    r"auth|connection-string|credential|header|key|password|secret|sas|token", re.IGNORECASE
)
"""In the names of properties whose values are never shown."""

_NEXT_STEPS: Final = {
    "NotInstalled|ImportError|ModuleNotFound": "install what PyIceberg names",
    "CommitFailed": "another program changes the table: run the export again",
    "No space left": "free space",
    "": "check that the catalog and the place of its files can be reached, the catalog's"
    " configuration, and its rights; docs/export.md lists them",
}
"""What to do about an error, by what its name or text contains; the first that fits counts."""


class CatalogError(Exception):
    """A text names no table, or PyIceberg has no configuration for its catalog."""


class TableName(NamedTuple):
    """What the text ``iceberg:CATALOG/namespace.table`` names."""

    catalog: str
    identifier: tuple[str, ...]


def table_name(text: str) -> TableName:
    """What a text names that begins with `PREFIX`.

    Raises:
        CatalogError: it has another form.
    """
    catalog, _, table = text[len(PREFIX) :].partition("/")
    identifier = tuple(table.split("."))
    if not catalog or len(identifier) < 2 or not all(identifier):
        raise CatalogError(
            "it does not name a table: name a catalog of PyIceberg's configuration, a namespace and"
            f" a table, such as {PREFIX}prod/audit.events"
        )
    return TableName(catalog, identifier)


def load_catalog(name: str) -> catalogs.Catalog:
    """The catalog of that name. The secrets of its configuration are masked from now on.

    Raises:
        CatalogError: PyIceberg has no configuration for it.
        Exception: it cannot be reached, or refuses the credentials.
    """
    configured: dict[str, Any] | None
    try:
        configured = Config().get_catalog_config(name)
    except Exception:  # noqa: BLE001 - of several libraries; the text may quote a secret
        raise CatalogError(_UNREADABLE) from None
    if configured is None:
        variable = f"PYICEBERG_CATALOG__{re.sub('[^A-Z0-9]', '_', name.upper())}__URI"
        raise CatalogError(
            f"PyIceberg has no catalog {sanitize(name)}: describe it in ~/.pyiceberg.yaml or in"
            f" variables such as {variable}, as docs/export.md shows"
        )
    mask_secrets(configured)
    logging.getLogger("pyiceberg").setLevel(logging.ERROR)  # it warns of each retry of a commit
    return catalogs.load_catalog(name, **configured)


def mask_secrets(properties: Mapping[str, Any]) -> None:
    """Mask the secrets among properties, and the logins in URLs, from now on."""
    for name, value in _flat(properties):
        if _SECRET.search(name) and value.lower() not in {"true", "false"}:
            register_secret(value, value.partition(":")[2])  # or a name and a secret
        login = value.partition("://")[2].rpartition("@")[0]
        register_secret(login, unquote(login.partition(":")[2]))


def reason_of(error: Exception) -> str:
    """What PyIceberg or a library of the catalog says, on one line, with the next step."""
    if isinstance(error, CatalogError):
        return str(error)
    said = f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"
    next_step = next(text for part, text in _NEXT_STEPS.items() if re.search(part, said))
    return f"PyIceberg says {sanitize(said)}: {next_step}"


def _flat(properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in properties.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", text) for inner, text in _flat(value))
        else:
            yield name, str(value)
