"""The same stream written in the usual way, with `RESTStream` and the code of the SDK's template.

Nothing is tuned and nothing is left out; every default of the template is kept. With ``--msgspec``
as the first argument, it uses the SDK's msgspec writer, by the one line that the SDK's
documentation shows.
"""

import decimal
import sys
from collections.abc import Iterable
from typing import Any, ClassVar

import requests
from singer_sdk import Stream, Tap
from singer_sdk import typing as th
from singer_sdk.authenticators import BearerTokenAuthenticator
from singer_sdk.contrib.msgspec import MsgSpecWriter
from singer_sdk.helpers.jsonpath import extract_jsonpath
from singer_sdk.helpers.types import Context
from singer_sdk.pagination import BaseAPIPaginator, JSONPathPaginator
from singer_sdk.streams import RESTStream


class AuditEventsStream(RESTStream[str]):
    """The audit events of one organization."""

    name = "audit_events"
    path = "/v1/organizations/{organization_id}/audit_events"
    primary_keys = ("id",)
    replication_key = "occurredAt"
    records_jsonpath = "$.auditEvents[*]"
    schema = th.PropertiesList(
        th.Property("id", th.StringType, required=True),
        th.Property("occurredAt", th.DateTimeType, required=True),
        th.Property(
            "action",
            th.ObjectType(
                th.Property("type", th.StringType),
                th.Property("details", th.ObjectType(additional_properties=True)),
            ),
        ),
        th.Property(
            "actor",
            th.ObjectType(
                th.Property("type", th.StringType),
                th.Property("id", th.StringType),
                th.Property("name", th.StringType),
                th.Property("email", th.StringType),
            ),
        ),
        th.Property(
            "context",
            th.ObjectType(
                th.Property("requestId", th.StringType),
                th.Property("sessionId", th.StringType),
                th.Property("requestIp", th.StringType),
            ),
        ),
        th.Property(
            "scope",
            th.ObjectType(
                th.Property("organizationId", th.StringType),
                th.Property("workspaceId", th.StringType),
                th.Property("workspaceName", th.StringType),
                th.Property("channelId", th.StringType),
            ),
        ),
        th.Property(
            "entity",
            th.ObjectType(
                th.Property("type", th.StringType),
                th.Property("subtype", th.StringType),
                th.Property("id", th.StringType),
                th.Property("name", th.StringType),
                th.Property("email", th.StringType),
            ),
        ),
    ).to_dict()

    @property
    def url_base(self) -> str:
        return str(self.config["base_url"])

    @property
    def authenticator(self) -> BearerTokenAuthenticator:
        return BearerTokenAuthenticator(token=self.config["access_token"])

    def get_new_paginator(self) -> BaseAPIPaginator[str | None]:
        return JSONPathPaginator("$.nextCursor")

    def get_url_params(
        self, context: Context | None, next_page_token: str | None
    ) -> dict[str, Any]:
        params: dict[str, Any] = {"order": "asc", "pageSize": 1000}
        if start := self.get_starting_timestamp(context):
            params["startTime"] = start.isoformat()
        if next_page_token:
            params["cursor"] = next_page_token
        return params

    def parse_response(self, response: requests.Response) -> Iterable[dict[str, Any]]:
        yield from extract_jsonpath(
            self.records_jsonpath, input=response.json(parse_float=decimal.Decimal)
        )


class UsualTap(Tap):
    """The tap of this stream."""

    name = "usual-tap"
    config_jsonschema: ClassVar[dict[str, Any]] = th.PropertiesList(
        th.Property("base_url", th.StringType(nullable=False), required=True),
        th.Property("organization_id", th.StringType(nullable=False), required=True),
        th.Property("access_token", th.StringType(nullable=False), required=True, secret=True),
        th.Property("start_date", th.DateTimeType(nullable=True)),
    ).to_dict()

    def discover_streams(self) -> list[Stream]:
        return [AuditEventsStream(self)]


class UsualTapWithMsgspec(UsualTap):
    """The same tap with the SDK's msgspec writer."""

    message_writer_class = MsgSpecWriter


if __name__ == "__main__":
    if sys.argv[1:2] == ["--msgspec"]:
        del sys.argv[1]
        UsualTapWithMsgspec.cli()
    else:
        UsualTap.cli()
