"""Hooks for schemathesis: use the sandbox's organization, and allow 400 where it is left open."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import schemathesis
from schemathesis.core.failures import Failure
from schemathesis.core.transport import Response
from schemathesis.openapi.checks import RejectedPositiveData

from tap_audit_events.sandbox import ORGANIZATION_ID
from tap_audit_events.sandbox.data.instants import instant_of


@schemathesis.hook
def before_call(
    context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]
) -> None:
    """Replace any UUID by the organization's; otherwise nearly every response would be 403."""
    if is_uuid(case.path_parameters.get("organizationId")):
        case.path_parameters["organizationId"] = ORGANIZATION_ID


@schemathesis.hook
def filter_failure(
    context: schemathesis.HookContext,
    failure: Failure,
    case: schemathesis.Case[Any],
    response: Response,
) -> bool:
    """Do not count 400 as a failure if the interface leaves the response open."""
    refused = isinstance(failure, RejectedPositiveData) and response.status_code == 400
    return not (refused and is_left_open(case.query))


def is_uuid(text: object) -> bool:
    try:
        return str(UUID(str(text))) == str(text).lower()
    except ValueError:
        return False


def is_left_open(query: Mapping[str, Any]) -> bool:
    """Whether interface.md 4.1 leaves the response to these parameters open.

    They have an invented cursor, an empty action type, or an end before the start.
    """
    if "cursor" in query or not all(query.get("actionTypes", "any").split(",")):
        return True
    start, end = query.get("startTime"), query.get("endTime")
    return bool(start and end and instant_of(end) < instant_of(start))
