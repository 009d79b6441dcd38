"""The declaration of the settings: of each, once, its type, bounds, default, check and description.

The schema, the table in the documents, the plugin definition, Airbyte's form, the checks and the
messages are derived from it. In the `extra` of a `Meta`, ``expected`` says what to set the setting
to, for messages, and ``check`` checks and converts a value of the right type. In a description,
``{bounds}`` stands for the bounds.
"""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, Final, Literal, Self

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from tap_audit_events.config import checks
from tap_audit_events.config.access_token import check_token
from tap_audit_events.config.names import PACKAGE
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.record_shape import RecordShape

A_TIME: Final = "a time such as 2026-01-31T00:00:00Z, or a date"


def _default_user_agent() -> str:
    try:
        return f"{PACKAGE}/{version(PACKAGE)}"
    except PackageNotFoundError:  # run from a source tree that is not installed
        return PACKAGE


class WithSecrets(Struct, frozen=True, kw_only=True):
    """A value whose `repr` shows no field, as one may be a token."""

    __repr__ = object.__repr__

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


# fmt: off
OrganizationId = Annotated[str, Meta(
    title="Organization ID",
    examples=["0b5e7f0c-53a4-4d2e-9b5a-1f2d3c4b5a69"],
    extra={
        "expected": "the UUID that the service's web application shows after /org/",
        "check": checks.organization_id,
    },
)]
AccessToken = Annotated[str, Meta(
    title="Access token",
    examples=["acme_pat_..."],
    extra_json_schema={"secret": True, "writeOnly": True},
    extra={
        "expected": "a personal access token with the scope organization:audit_events_read",
        "check": check_token,
    },
)]
AccessTokenFile = Annotated[str | None, Meta(
    title="Access token file",
    examples=["/run/secrets/audit-events-token"],
    extra={"expected": "the path of a file that contains the access token"},
)]


class Organization(WithSecrets, frozen=True, kw_only=True):
    """One organization of a run, with its token, and the file of the token if there is one."""

    organization_id: Annotated[OrganizationId, Meta(description="UUID of the organization.")]
    access_token: Annotated[AccessToken, Meta(
        description="Its own access token, if it has one.",
    )] = ""
    access_token_file: Annotated[AccessTokenFile, Meta(
        description="Path of a file with its own access token, if it has one.",
    )] = None


class Settings(WithSecrets, frozen=True, kw_only=True):
    """The settings of one run, each checked (interface.md, sections 4.1, 5 and 8).

    If `organizations` is set, `organization_id` is empty, `access_token` may be empty, and `each`
    yields the settings of each organization; only those have `is_one_of_several`.
    """

    base_url: Annotated[str, Meta(
        title="Base URL",
        description="URL of the service without /v1/organizations, for example"
        " https://api.example.com. It must be https; plain http is allowed only to loopback hosts,"
        " such as localhost.",
        examples=["https://api.example.com"],
        extra={
            "expected": "the https URL of the service, for example https://api.example.com",
            "check": checks.base_url,
        },
    )]
    organization_id: Annotated[OrganizationId, Meta(
        description="UUID of the organization whose events are read. The service's web application"
        " shows it in the URL of the organization page, after /org/. Set either organization_id or"
        " organizations.",
    )] = ""
    organizations: Annotated[tuple[Organization, ...], Meta(
        title="Organizations",
        description="Organizations to read in one run. Each record then has a property"
        " organization_id, and the state has a bookmark for each organization. An item has an"
        " organization_id and, if the organization needs another token, an access_token or"
        ' access_token_file. In the environment, write JSON: [{"organization_id": "…"}].',
        examples=[[{"organization_id": "0b5e7f0c-53a4-4d2e-9b5a-1f2d3c4b5a69"}]],
        extra_json_schema={"secret": True},
        extra={"expected": 'a list of objects, for example [{"organization_id": "…"}]'},
    )] = ()
    access_token: Annotated[AccessToken, Meta(
        description="Personal access token of an administrator of the organization, with the scope"
        " organization:audit_events_read. Set either access_token or access_token_file.",
    )] = ""
    access_token_file: Annotated[AccessTokenFile, Meta(
        description="Path of a file that contains only the access token, such as a mounted"
        " secret. The tap reads it at start, and again if the service refuses the token. A"
        " relative path is relative to the working directory.",
    )] = None
    start_date: Annotated[Instant | None, Meta(
        title="Start date",
        description="Time of the earliest event to read, inclusive: RFC 3339 with an offset, for"
        " example 2026-01-01T00:00:00Z, or a date alone, 2026-01-01, which is midnight UTC. If"
        " unset, the first run starts at the oldest event.",
        examples=["2026-01-01T00:00:00Z", "2026-01-01"],
        extra={"expected": A_TIME, "check": checks.start_date},
    )] = None
    end_date: Annotated[Instant | None, Meta(
        title="End date",
        description="Time of the latest event to read, inclusive: RFC 3339 with an offset, or a"
        " date alone, which is the end of that day in UTC; not before start_date. If unset, a run"
        " reads up to the time at which it starts.",
        examples=["2026-01-31T12:00:00Z", "2026-01-31"],
        extra={"expected": A_TIME, "check": checks.end_date},
    )] = None
    action_types: Annotated[tuple[str, ...], Meta(
        title="Action types",
        description="Only events with one of these values of action.type are read, for example"
        ' ["workspace_create"]. If unset or empty, all events are read.',
        examples=[["workspace_create"]],
        extra={
            "expected": 'a list of strings, for example ["workspace_create"]',
            "check": checks.action_types,
        },
    )] = ()
    exclude_action_types: Annotated[tuple[str, ...], Meta(
        title="Action types to exclude",
        description="Events with one of these values of action.type are read but not delivered, for"
        ' example ["user_sign_in"]. A type cannot be in action_types too.',
        examples=[["user_sign_in"]],
        extra={
            "expected": 'a list of strings, for example ["user_sign_in"]',
            "check": checks.action_types,
        },
    )] = ()
    page_size: Annotated[int, Meta(
        ge=1, le=1000, title="Page size",
        description="Maximum number of events per request, {bounds}.",
    )] = 1000
    concurrency: Annotated[int, Meta(
        ge=1, le=32, title="Concurrency",
        description="Maximum number of requests in flight, {bounds}. A higher value helps if the"
        " service responds slowly. The tap sends fewer if the service responds fast or limits the"
        " request rate.",
    )] = 4
    lookback_seconds: Annotated[int, Meta(
        ge=0, title="Lookback",
        description="A run starts this many seconds before its bookmark, to find events that"
        " became visible late; {bounds}. Events that were already delivered are not delivered"
        " again.",
    )] = 300
    request_timeout_seconds: Annotated[float, Meta(
        gt=0, le=3600, title="Request timeout",
        description="Seconds to wait for a connection, and for each further part of a response;"
        " {bounds}. A whole response may take at most ten times as long.",
    )] = 60
    max_retries: Annotated[int, Meta(
        ge=0, title="Retries",
        description="Maximum number of retries of one request after status 408, 429 or 5xx, a"
        " timeout, a broken connection, or a response that is incomplete or not JSON; {bounds}.",
    )] = 8
    max_response_megabytes: Annotated[int, Meta(
        ge=1, le=2000, title="Largest response",
        description="Largest response accepted, in MB after decompression, {bounds}. A page of"
        " 1,000 large events is a few MB. Each request in flight may use that much memory.",
    )] = 256
    quarantine_file: Annotated[str | None, Meta(
        title="Quarantine file",
        description="Path of a file to which events that cannot be used are appended, each once,"
        " as JSON Lines. The run then continues after them. If unset, such an event ends the run."
        " The file must be on a disk that outlives the run.",
        examples=["/var/lib/audit-events/quarantine.jsonl"],
        extra={
            "expected": "the path of a file, for example /var/lib/audit-events/quarantine.jsonl",
            "check": checks.quarantine_file,
        },
    )] = None
    details_format: Annotated[Literal["object", "string"], Meta(
        title="Format of details",
        description="object: action.details is an object, as the service sends it. string: it is"
        " JSON text, for loaders that do not keep an object whose fields are not known in advance.",
    )] = "object"
    raw_event: Annotated[bool, Meta(
        title="Raw event",
        description="Add a property raw_event to each record: the whole event as JSON text,"
        " including fields that are deselected or not in the schema.",
    )] = False
    user_agent: Annotated[str, Meta(
        title="User agent",
        description="Value of the User-Agent header.",
        extra={
            "expected": "a name, for example acme-pipeline/1.0",
            "check": checks.user_agent,
        },
    )] = _default_user_agent()
    # fmt: on
    is_one_of_several: bool = False

    @property
    def record_shape(self) -> RecordShape:
        return RecordShape(
            details_as_text=self.details_format == "string",
            has_raw_event=self.raw_event,
            organization_id=(
                self.organization_id if self.is_one_of_several or self.organizations else None
            ),
        )

    @property
    def tokens(self) -> tuple[str, ...]:
        own = (each.access_token for each in self.organizations)
        shared = [self.access_token] if self.access_token else []
        return tuple(dict.fromkeys([*shared, *own]))

    def each(self) -> Iterator[Self]:
        if not self.organizations:
            yield self
        for each in self.organizations:
            yield replace(self, **asdict(each), organizations=(), is_one_of_several=True)
