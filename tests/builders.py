"""Builders of events and responses: a test names only the fields that matter to it."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

import requests
from urllib3 import HTTPResponse

ORGANIZATION_ID = "6f1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47"

TOO_DEEP = b"[" * 1_000_000 + b"]" * 1_000_000
"""JSON that is nested too deeply for every Python: since 3.14, the stack size is the limit."""


def an_event(
    id: str = "event-1",  # noqa: A002 - the name of the field
    at: str = "2024-05-06T07:08:09.123Z",
    action_type: str = "workspace_create",
    **fields: Any,
) -> dict[str, Any]:
    """Return a complete event; `fields` replace or add top-level fields, such as `actor={...}`."""
    return {
        "id": id,
        "occurredAt": at,
        "action": {"type": action_type, "details": {"fields": {"name": "Research"}}},
        "actor": {"type": "user", "id": "user-1", "name": "Zoë", "email": "zoe@example.com"},
        "context": {"requestId": "request-1", "sessionId": "session-1", "requestIp": "192.0.2.1"},
        "scope": {"organizationId": ORGANIZATION_ID, "workspaceId": "w-1", "workspaceName": "R&D"},
        "entity": {"type": "workspace", "id": "w-1", "name": "Research"},
    } | fields


def a_response(
    status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> requests.Response:
    """Return a response whose body can be read."""
    response = requests.Response()
    response.status_code = status
    response.raw = HTTPResponse(BytesIO(body), preload_content=False)
    response.headers.update(headers or {})
    return response
