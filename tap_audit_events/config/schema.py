"""The settings as JSON Schema, derived from their declaration."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tap_audit_events.config.declaration import Settings
from tap_audit_events.config.fields import Field, fields_of


def _schema_of(struct: type[msgspec.Struct]) -> dict[str, Any]:
    fields = fields_of(struct)
    return {
        "type": "object",
        "properties": {name: _property(field) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.is_required],
    }


def _property(field: Field) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", **msgspec.json.schema(field.type)}
    schema["description"] = schema["description"].replace("{bounds}", field.bounds)
    if field.struct:
        del schema["$defs"]
        schema["items"] = _schema_of(field.struct)
    if field.default not in (None, "", ()) and not field.is_required:
        schema["default"] = field.default
    schema["type"] = [schema["type"], *([] if field.is_required else ["null"])]
    return schema


SETTINGS_SCHEMA: Final[dict[str, Any]] = {
    **_schema_of(Settings),
    "$schema": "https://json-schema.org/draft/2020-12/schema",
}
"""The settings as JSON Schema, for ``--about`` and for platforms."""

SETTINGS: Final = tuple(SETTINGS_SCHEMA["properties"])
"""The names of the settings."""
