"""The declared settings: names, types, bounds, defaults and descriptions."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

PACKAGE: Final = "tap-audit-events"
ENVIRONMENT_PREFIX: Final = "TAP_AUDIT_EVENTS_"


def _default_user_agent() -> str:
    try:
        return f"{PACKAGE}/{version(PACKAGE)}"
    except PackageNotFoundError:  # run from a source tree that is not installed
        return PACKAGE


def _optional(kind: str, **more: Any) -> dict[str, Any]:
    """The JSON Schema of a setting that may be left out."""
    return {"type": [kind, "null"], **more}


_PROPERTIES: Final[dict[str, Any]] = {
    "base_url": {
        "type": ["string"],
        "title": "Base URL",
        "description": "URL of the service without /v1/organizations, for example"
        " https://api.example.com. It must be https; plain http is allowed only to loopback hosts,"
        " such as localhost.",
    },
    "organization_id": _optional(
        "string",
        title="Organization ID",
        description="UUID of the organization whose events are read. The service's web application"
        " shows it in the URL of the organization page, after /org/. Set either organization_id or"
        " organizations.",
    ),
    "organizations": _optional(
        "array",
        items={
            "type": "object",
            "properties": {
                "organization_id": {
                    "type": "string",
                    "title": "Organization ID",
                    "description": "UUID of the organization.",
                },
                "access_token": {
                    "type": ["string", "null"],
                    "secret": True,
                    "writeOnly": True,
                    "title": "Access token",
                    "description": "Its own access token, if it has one.",
                },
                "access_token_file": {
                    "type": ["string", "null"],
                    "title": "Access token file",
                    "description": "Path of a file with its own access token, if it has one.",
                },
            },
            "required": ["organization_id"],
        },
        secret=True,
        title="Organizations",
        description="Organizations to read in one run. Each record then has a property"
        " organization_id, and the state has a bookmark for each organization. An item has an"
        " organization_id and, if the organization needs another token, an access_token or"
        ' access_token_file. In the environment, write JSON: [{"organization_id": "…"}].',
    ),
    "access_token": _optional(
        "string",
        secret=True,
        writeOnly=True,
        title="Access token",
        description="Personal access token of an administrator of the organization, with the scope"
        " organization:audit_events_read. Set either access_token or access_token_file.",
    ),
    "access_token_file": _optional(
        "string",
        title="Access token file",
        description="Path of a file that contains only the access token, such as a mounted"
        " secret. The tap reads it at start, and again if the service refuses the token. A relative"
        " path is relative to the working directory.",
    ),
    "start_date": _optional(
        "string",
        title="Start date",
        description="Time of the earliest event to read, inclusive: RFC 3339 with an offset, for"
        " example 2026-01-01T00:00:00Z, or a date alone, 2026-01-01, which is midnight UTC. If"
        " unset, the first run starts at the oldest event.",
    ),
    "end_date": _optional(
        "string",
        title="End date",
        description="Time of the latest event to read, inclusive: RFC 3339 with an offset, or a"
        " date alone, which is the end of that day in UTC; not before start_date. If unset, a run"
        " reads up to the time at which it starts.",
    ),
    "action_types": _optional(
        "array",
        items={"type": ["string"]},
        title="Action types",
        description="Only events with one of these values of action.type are read, for example"
        ' ["workspace_create"]. If unset or empty, all events are read.',
    ),
    "page_size": _optional(
        "integer",
        minimum=1,
        maximum=1000,
        default=1000,
        title="Page size",
        description="Maximum number of events per request, 1 to 1000.",
    ),
    "concurrency": _optional(
        "integer",
        minimum=1,
        maximum=32,
        default=4,
        title="Concurrency",
        description="Maximum number of requests in flight, 1 to 32. A higher value helps if the"
        " service responds slowly. The tap sends fewer if the service responds fast or limits the"
        " request rate.",
    ),
    "lookback_seconds": _optional(
        "integer",
        minimum=0,
        default=300,
        title="Lookback",
        description="A run starts this many seconds before its bookmark, to find events that became"
        " visible late; 0 or more. Events that were already delivered are not delivered again.",
    ),
    "request_timeout_seconds": _optional(
        "number",
        exclusiveMinimum=0,
        maximum=3600,
        default=60,
        title="Request timeout",
        description="Seconds to wait for a connection, and for each further part of a response;"
        " above 0, at most 3600. A whole response may take at most ten times as long.",
    ),
    "max_retries": _optional(
        "integer",
        minimum=0,
        default=8,
        title="Retries",
        description="Maximum number of retries of one request after status 408, 429 or 5xx, a"
        " timeout, a broken connection, or a response that is incomplete or not JSON; 0 or more.",
    ),
    "max_response_megabytes": _optional(
        "integer",
        minimum=1,
        maximum=2000,
        default=256,
        title="Largest response",
        description="Largest response accepted, in MB after decompression, 1 to 2000. A page of"
        " 1,000 large events is a few MB. Each request in flight may use that much memory.",
    ),
    "details_format": _optional(
        "string",
        enum=["object", "string"],
        default="object",
        title="Format of details",
        description="object: action.details is an object, as the service sends it. string: it is"
        " JSON text, for loaders that do not keep an object whose fields are not known in advance.",
    ),
    "raw_event": _optional(
        "boolean",
        default=False,
        title="Raw event",
        description="Add a property raw_event to each record: the whole event as JSON text,"
        " including fields that are deselected or not in the schema.",
    ),
    "user_agent": _optional(
        "string",
        default=_default_user_agent(),
        title="User agent",
        description="Value of the User-Agent header.",
    ),
}

SETTINGS_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": _PROPERTIES,
    "required": ["base_url"],
    "$schema": "https://json-schema.org/draft/2020-12/schema",
}
"""The settings as JSON Schema, for ``--about`` and for platforms."""

SETTINGS: Final = tuple(_PROPERTIES)
"""The names of the settings."""
