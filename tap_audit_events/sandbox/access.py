"""Who may ask what: the operation, the token and the organization (interface.md 4.1 and 5)."""

import hmac
import re
from collections.abc import Mapping

from tap_audit_events.sandbox.answers import invalid, refusal

_OPERATION = re.compile(r"/v1/organizations/([^/]+)/audit_events")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def check_operation(method: str, path: str) -> str:
    """The organization in the path of the one operation; raises RefusedError, 404 or 405, else."""
    found = _OPERATION.fullmatch(path)
    if found is None:
        raise refusal(404, "notFound", f"there is nothing at {path}", violation=True)
    if method != "GET":
        message = f"{method} is not allowed here"
        allow = (("allow", "GET"),)
        raise refusal(405, "methodNotAllowed", message, headers=allow, violation=True)
    return found[1]


def check_no_body(headers: Mapping[str, str]) -> None:
    """Raise RefusedError where the request has a body; the operation has none."""
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise invalid("the request has a body")


def check_token(headers: Mapping[str, str], access_token: str) -> None:
    """Raise RefusedError, 401, unless the token is there (interface.md 5, rules 1 and 5)."""
    given = headers.get("authorization")
    if given is None:
        raise refusal(401, "unauthorized", "the header Authorization is missing", violation=True)
    if not hmac.compare_digest(given.encode(), f"Bearer {access_token}".encode()):
        raise refusal(401, "unauthorized", "the access token is not valid")


def check_organization(given: str, organization_id: str) -> None:
    """Raise RefusedError, 400 for what is no UUID and 403 for another organization than ours."""
    if _UUID.fullmatch(given) is None:
        raise invalid("the organization id is not a UUID", organizationId=given)
    if given.lower() != organization_id.lower():
        message = "the token's owner is not an administrator of this organization"
        raise refusal(403, "forbidden", message, {"organizationId": given})
