"""Every field of an event: its type, an example, and where each loader stores it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tap_audit_events.events.schema import SCHEMA
from tests.builders import ORGANIZATION_ID

EXAMPLE: Final[dict[str, Any]] = {
    "id": "0c2f6f0e-8f0b-4b52-9d6c-8a4a3c1f9d10",
    "occurredAt": "2026-01-31T08:00:00.123Z",
    "action": {"type": "workspace_create", "details": {"fields": {"name": "Research"}}},
    "actor": {"type": "user", "id": "user-1", "name": "Zoë Brontë", "email": "zoe@example.com"},
    "context": {"requestId": "request-1", "sessionId": "session-1", "requestIp": "192.0.2.1"},
    "scope": {
        "organizationId": ORGANIZATION_ID,
        "workspaceId": "workspace-1",
        "workspaceName": "Research",
        "channelId": "channel-1",
    },
    "entity": {
        "type": "user",
        "subtype": "guest",
        "id": "user-2",
        "name": "Søren",
        "email": "soren@example.com",
    },
}
"""An event with every field of the interface."""

Path = tuple[str, ...]


class Field(NamedTuple):
    """A field of the schema.

    Attributes:
        path: the names that lead to it.
        type: its type, and its format if it has one.
    """

    path: Path
    type: str
    description: str

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def example(self) -> Any:
        value: Any = EXAMPLE
        for name in self.path:
            value = value[name]
        return value

    @property
    def is_object(self) -> bool:
        return isinstance(self.example, dict)


def fields() -> list[Field]:
    """Each field that is not a group of fields, in the order of the schema."""
    return list(_fields((), SCHEMA))


def _fields(path: Path, schema: Mapping[str, Any]) -> Iterator[Field]:
    for name, inner in schema["properties"].items():
        if "properties" in inner:
            yield from _fields((*path, name), inner)
        else:
            types = [inner["type"]] if isinstance(inner["type"], str) else inner["type"]
            kind = " or ".join(types) + (f", {inner['format']}" if "format" in inner else "")
            yield Field((*path, name), kind, inner["description"])


Locate = Callable[[Field], str]


def in_postgres(field: Field) -> str:
    """The SQL of a field in a table of meltanolabs-target-postgres."""
    name, *inner = field.path
    column = f'"{name}"' if name != name.lower() else name
    operator = "->" if field.is_object else "->>"
    return column + "".join(f" {operator} '{each}'" for each in inner)


def in_pipelinewise(field: Field) -> str:
    """The SQL of a field in a table of pipelinewise-target-postgres."""
    return field.path[0].lower() if len(field.path) == 1 else in_postgres(field)


def in_duckdb(field: Field) -> str:
    """The SQL of a field in a table of target-duckdb."""
    name, *inner = field.path
    operator = "->" if field.is_object else "->>"
    return name.lower() + "".join(f" {operator} '$.{each}'" for each in inner)


def in_csv(field: Field) -> str:
    """The column of a field in a file of meltanolabs-target-csv, with flattening."""
    return "__".join(field.path)


LOCATIONS: Final[dict[str, Locate]] = {
    "meltanolabs-target-postgres": in_postgres,
    "pipelinewise-target-postgres": in_pipelinewise,
    "target-duckdb": in_duckdb,
    "meltanolabs-target-csv, flattening": in_csv,
}
"""Where a field is stored, by the name of a case."""
