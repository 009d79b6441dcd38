"""The specification for ``spec``: a form of the settings, derived from their declaration."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any, Final

from tap_audit_events.config.names import PACKAGE
from tap_audit_events.config.schema import SETTINGS_SCHEMA

TOKEN_FILE: Final = "access_token_file"  # noqa: S105 - a name
"""Users of Airbyte's form must not name files of the machine."""

LOCAL_FILES: Final = (TOKEN_FILE, "quarantine_file")
"""The settings that the source lacks. Events in a file of a container would vanish with it."""

_TIME: Final = {
    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2}))?$",
    "pattern_descriptor": "YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ",
}
"""A form checks times while they are typed. The format date-time would refuse a date alone."""

_TIMES: Final = ("start_date", "end_date")
_NOT_OF_AIRBYTE: Final = ("secret", "writeOnly")
_OF_OTHERS = re.compile(rf"[^.]*\b(?:{TOKEN_FILE}|environment)\b.*?(?:\. |$)")
"""Sentences about what the source lacks."""

PROPERTIES: Final = tuple(name for name in SETTINGS_SCHEMA["properties"] if name not in LOCAL_FILES)
"""The settings that the source has."""


def specification() -> dict[str, Any]:
    """The connector's specification."""
    url = _documentation_url()
    return {
        **({} if url is None else {"documentationUrl": url}),
        "supportsIncremental": True,
        "supported_destination_sync_modes": ["append", "overwrite", "append_dedup"],
        "connectionSpecification": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "Audit events",
            "type": "object",
            "required": ["base_url", "access_token"],
            "additionalProperties": True,
            "properties": _fields(SETTINGS_SCHEMA),
        },
    }


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    declared = schema["properties"].items()
    names = [(name, each) for name, each in declared if name not in LOCAL_FILES]
    return {name: _field(name, each) | {"order": n} for n, (name, each) in enumerate(names)}


def _field(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    field = {key: value for key, value in schema.items() if key not in _NOT_OF_AIRBYTE}
    field["type"] = schema["type"][0]  # without null, which Airbyte's forms do not support
    field["description"] = _description(schema["description"])
    if schema.get("secret") and field["type"] == "string":
        field["airbyte_secret"] = True
    if "properties" in schema.get("items", {}):
        items = schema["items"]
        field["items"] = items | {"properties": _fields(items)}
    return field | (_TIME if name in _TIMES else {})


def _description(text: str) -> str:
    return _OF_OTHERS.sub("", text).strip().replace("The tap", "The source")


def _documentation_url() -> str | None:
    """URL of the source's documentation, None if it is not known."""
    try:
        urls = metadata(PACKAGE).get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    found = dict(url.split(", ", 1) for url in urls)
    return f"{found['Documentation']}/airbyte.md" if "Documentation" in found else None
