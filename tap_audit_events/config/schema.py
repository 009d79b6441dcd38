"""The declared settings: names, types, bounds, defaults and descriptions."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from singer_sdk import typing as th

PACKAGE: Final = "tap-audit-events"
ENVIRONMENT_PREFIX: Final = "TAP_AUDIT_EVENTS_"


def _default_user_agent() -> str:
    try:
        return f"{PACKAGE}/{version(PACKAGE)}"
    except PackageNotFoundError:  # run from a source tree that is not installed
        return PACKAGE


SETTINGS_SCHEMA: Final[dict[str, Any]] = th.PropertiesList(
    th.Property(
        "base_url",
        th.StringType,
        required=True,
        title="Base URL",
        description="URL of the service, up to but without /v1/organizations, for example"
        " https://api.example.com. It must be https; plain http is allowed only to loopback hosts,"
        " such as localhost.",
    ),
    th.Property(
        "organization_id",
        th.StringType,
        required=True,
        title="Organization ID",
        description="UUID of the organization whose events are read. The service's web application"
        " shows it in the URL of the organization page, after /org/.",
    ),
    th.Property(
        "access_token",
        th.StringType,
        secret=True,
        title="Access token",
        description="Personal access token of an administrator of the organization, with the scope"
        " organization:audit_events_read. Set either access_token or access_token_file.",
    ),
    th.Property(
        "access_token_file",
        th.StringType,
        title="Access token file",
        description="Path of a file that contains only the access token, such as a mounted"
        " secret. The tap reads it at start, and again if the service refuses the token.",
    ),
    th.Property(
        "start_date",
        th.DateTimeType,
        title="Start date",
        description="Time of the earliest event to read, inclusive: RFC 3339 with an offset, for"
        " example 2026-01-01T00:00:00Z. If unset, the first run starts at the oldest event.",
    ),
    th.Property(
        "end_date",
        th.DateTimeType,
        title="End date",
        description="Time of the latest event to read, inclusive: RFC 3339 with an offset, not"
        " before start_date. If unset, a run reads up to the time at which it starts.",
    ),
    th.Property(
        "action_types",
        th.ArrayType(th.StringType),
        title="Action types",
        description="Only events with one of these values of action.type are read, for example"
        ' ["workspace_create"]. If unset, all events are read.',
    ),
    th.Property(
        "page_size",
        th.IntegerType(minimum=1, maximum=1000),
        default=1000,
        title="Page size",
        description="Most events per request, 1 to 1000.",
    ),
    th.Property(
        "concurrency",
        th.IntegerType(minimum=1, maximum=32),
        default=4,
        title="Concurrency",
        description="Most requests in flight at the same time, 1 to 32. A higher value helps if the"
        " service responds slowly. The tap sends fewer if the service limits the request rate or"
        " responds at once.",
    ),
    th.Property(
        "lookback_seconds",
        th.IntegerType(minimum=0),
        default=300,
        title="Lookback",
        description="How many seconds before its bookmark a run starts, to find events that became"
        " visible late. Events that were already delivered are not emitted again.",
    ),
    th.Property(
        "request_timeout_seconds",
        th.NumberType(exclusive_minimum=0, maximum=3600),
        default=60,
        title="Request timeout",
        description="Seconds to wait for a connection, and for each further part of a response;"
        " above 0, at most 3600. A response as a whole may take at most ten times as long.",
    ),
    th.Property(
        "max_retries",
        th.IntegerType(minimum=0),
        default=8,
        title="Retries",
        description="How often one request is retried after status 429 or 5xx, a timeout, a broken"
        " connection, or a response that is not JSON. 0 means never.",
    ),
    th.Property(
        "max_response_megabytes",
        th.IntegerType(minimum=1, maximum=2000),
        default=256,
        title="Largest response",
        description="Largest response accepted, in MB after decompression, 1 to 2000. A page of"
        " 1,000 large events has a few MB. Each request in flight may use as much memory.",
    ),
    th.Property(
        "user_agent",
        th.StringType,
        default=_default_user_agent(),
        title="User agent",
        description="Value of the User-Agent header.",
    ),
).to_dict()
"""The settings as JSON Schema, for ``--about`` and for platforms."""
