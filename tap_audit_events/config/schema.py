"""The settings as they are declared: names, kinds, bounds, defaults, words for people."""

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
        description="Address of the service, the part before /v1/organizations, for example"
        " https://api.example.com. It must be https; plain http is allowed to this machine only.",
    ),
    th.Property(
        "organization_id",
        th.StringType,
        required=True,
        title="Organization ID",
        description="UUID of the organization whose events are read. The service's web application"
        " shows it in the address of the organization page, after /org/.",
    ),
    th.Property(
        "access_token",
        th.StringType,
        secret=True,
        title="Access token",
        description="Personal access token with the scope organization:audit_events_read, of a user"
        " who is an administrator of the organization. Give either it or access_token_file.",
    ),
    th.Property(
        "access_token_file",
        th.StringType,
        title="Access token file",
        description="Path of a file that holds the access token and nothing else, such as a mounted"
        " secret. It is read at start, and again where the service refuses the token.",
    ),
    th.Property(
        "start_date",
        th.DateTimeType,
        title="Start date",
        description="Earliest event to read, inclusive: RFC 3339 with an offset, for example"
        " 2026-01-01T00:00:00Z. Without it a first run starts at the oldest event.",
    ),
    th.Property(
        "end_date",
        th.DateTimeType,
        title="End date",
        description="Latest event to read, inclusive: RFC 3339 with an offset, not before"
        " start_date. Without it a run reads up to the time it starts.",
    ),
    th.Property(
        "action_types",
        th.ArrayType(th.StringType),
        title="Action types",
        description="Only events whose action.type is in this list are read, for example"
        ' ["workspace_create"]. Without it all are.',
    ),
    th.Property(
        "page_size",
        th.IntegerType(minimum=1, maximum=1000),
        default=1000,
        title="Page size",
        description="Events a request asks for at most, 1 to 1000.",
    ),
    th.Property(
        "concurrency",
        th.IntegerType(minimum=1, maximum=32),
        default=4,
        title="Concurrency",
        description="Requests in flight at most, 1 to 32. More help where the service is far away;"
        " fewer are sent where it limits the rate or replies at once.",
    ),
    th.Property(
        "lookback_seconds",
        th.IntegerType(minimum=0),
        default=300,
        title="Lookback",
        description="How many seconds before its bookmark a run starts again, for events that"
        " become visible late. What was delivered before is not emitted again.",
    ),
    th.Property(
        "request_timeout_seconds",
        th.NumberType(exclusive_minimum=0, maximum=3600),
        default=60,
        title="Request timeout",
        description="Seconds to wait for a connection, and for each part of an answer;"
        " above 0, at most 3600.",
    ),
    th.Property(
        "max_retries",
        th.IntegerType(minimum=0),
        default=8,
        title="Retries",
        description="How often one request is sent again after status 429 or 5xx, a timeout, a"
        " broken connection or an answer that is no JSON. 0 for never.",
    ),
    th.Property(
        "max_response_megabytes",
        th.IntegerType(minimum=1, maximum=2000),
        default=256,
        title="Largest response",
        description="Millions of bytes of an answer, unpacked, beyond which it is an error, 1 to"
        " 2000. A page of 1,000 large events has a few; each request in flight may take as many"
        " of memory.",
    ),
    th.Property(
        "user_agent",
        th.StringType,
        default=_default_user_agent(),
        title="User agent",
        description="What the tap calls itself in the User-Agent header.",
    ),
).to_dict()
"""The settings as JSON Schema, for ``--about`` and for platforms."""
