"""The specification for ``spec``: a form of the settings, derived from their declaration."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata
from typing import Any, Final

from tap_audit_events.config.schema import PACKAGE, SETTINGS_SCHEMA

TOKEN_FILE: Final = "access_token_file"  # noqa: S105 - a name
"""A setting that the source lacks: users of Airbyte's form must not name files of the machine."""

_TIME: Final = {
    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2}))?$",
    "pattern_descriptor": "YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ",
}
"""A form checks times while they are typed. The format date-time would refuse a date alone."""

_ADDED: Final[dict[str, dict[str, Any]]] = {
    "base_url": {"examples": ["https://api.example.com"]},
    "organization_id": {
        "examples": ["0b5e7f0c-53a4-4d2e-9b5a-1f2d3c4b5a69"],
        "description": "UUID of the organization whose events are read. The service's web"
        " application shows it in the URL of the organization page, after /org/. Set either this"
        " or organizations.",
    },
    "organizations": {
        "items": {
            "type": "object",
            "required": ["organization_id"],
            "properties": {
                "organization_id": {"type": "string", "title": "Organization ID", "order": 0},
                "access_token": {
                    "type": "string",
                    "title": "Access token, if it has its own",
                    "airbyte_secret": True,
                    "order": 1,
                },
            },
        },
        "description": "Organizations to read in one sync. Each record then has a property"
        " organization_id, and the state has a bookmark for each organization.",
    },
    "access_token": {
        "description": "Personal access token of an administrator of the organization, with the"
        " scope organization:audit_events_read.",
    },
    "start_date": {"examples": ["2026-01-01", "2026-01-01T00:00:00Z"], **_TIME},
    "end_date": {"examples": ["2026-01-31", "2026-01-31T12:00:00Z"], **_TIME},
    "action_types": {"items": {"type": "string"}, "examples": [["workspace_create"]]},
}
_NOT_OF_AIRBYTE: Final = ("secret", "writeOnly")

PROPERTIES: Final = tuple(name for name in SETTINGS_SCHEMA["properties"] if name != TOKEN_FILE)
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
            "properties": {name: _property(name, order) for order, name in enumerate(PROPERTIES)},
        },
    }


def _property(name: str, order: int) -> dict[str, Any]:
    schema = SETTINGS_SCHEMA["properties"][name]
    declared = {key: value for key, value in schema.items() if key not in _NOT_OF_AIRBYTE}
    description = declared["description"].replace("The tap", "The source")
    declared |= {"type": _only_type(declared), "description": description, "order": order}
    if schema.get("secret") and declared["type"] == "string":
        declared["airbyte_secret"] = True
    return declared | _ADDED.get(name, {})


def _only_type(schema: dict[str, Any]) -> str:
    """The type without null, which Airbyte's forms do not support."""
    (found,) = (each for each in schema["type"] if each != "null")
    return str(found)


def _documentation_url() -> str | None:
    """URL of the source's documentation, None if it is not known."""
    try:
        urls = metadata(PACKAGE).get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    found = dict(url.split(", ", 1) for url in urls)
    return f"{found['Documentation']}/airbyte.md" if "Documentation" in found else None
