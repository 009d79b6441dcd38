"""Several services behind one port, each with an organization of its own."""

import re
from collections.abc import Iterable, Mapping

from tap_audit_events.sandbox.request import ReceivedRequest
from tap_audit_events.sandbox.response import Response
from tap_audit_events.sandbox.service import Service

_ORGANIZATION = re.compile(r"/v1/organizations/([^/]+)/")


class SeveralServices:
    """Hands each request to the service of the organization in its path.

    The first service refuses requests for any other organization.
    """

    def __init__(self, services: Iterable[Service]) -> None:
        """Serve at least one service, each for another organization."""
        self.services = {each.organization_id.lower(): each for each in services}
        self._first = next(iter(self.services.values()))

    @property
    def access_token(self) -> str:
        """The token of the first service."""
        return self._first.access_token

    @property
    def requests(self) -> list[ReceivedRequest]:
        """Every request so far, in the order in which they arrived."""
        requests = [request for each in self.services.values() for request in each.requests]
        return sorted(requests, key=lambda request: request.seconds)

    @property
    def violations(self) -> list[str]:
        """What clients did that the interface forbids."""
        return [violation for each in self.services.values() for violation in each.violations]

    def respond(
        self,
        method: str,
        path: str,
        query_string: bytes,
        headers: Mapping[str, str],
        reused: bool = False,
    ) -> Response:
        """Respond to a request, as the organization's service does."""
        found = _ORGANIZATION.match(path)
        service = self.services.get(found[1].lower() if found else "", self._first)
        return service.respond(method, path, query_string, headers, reused)
