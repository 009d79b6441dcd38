"""Services of several organizations behind one server, for tests of the tap and other faces."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tap_audit_events.sandbox import Service, serve
from tap_audit_events.sandbox.several import SeveralServices
from tests.builders import an_event
from tests.running import Run, run

SHARED = "acme_pat_for-all-organizations"


def an_id(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def a_service(number: int, events: int, **options: Any) -> Service:
    """Return the service of an organization; its events have the same ids as in all others."""
    service = Service(organization_id=an_id(number), **{"access_token": SHARED, **options})
    service.add(
        an_event(id=f"e{n:04}", at=f"2024-05-06T08:{n // 60:02}:{n % 60:02}Z")
        for n in range(events)
    )
    return service


class SharedServer:
    """Services behind one server, and the settings that reach them."""

    def __init__(self, services: list[Service]) -> None:
        self.services = services
        self.several = SeveralServices(services)
        self.base_url = ""

    @contextmanager
    def served(self) -> Iterator["SharedServer"]:
        with serve(self.several) as server:
            self.base_url = server.base_url
            yield self
        assert self.several.violations == []

    @property
    def with_tokens(self) -> list[dict[str, str]]:
        """The setting `organizations`, in which each organization has the token of its service."""
        return [
            {"organization_id": each.organization_id, "access_token": each.access_token}
            for each in self.services
        ]

    def run(
        self, *arguments: str, state: object = None, catalog: object = None, **more: Any
    ) -> Run:
        return run(self.settings | more, *arguments, state=state, catalog=catalog)

    @property
    def settings(self) -> dict[str, Any]:
        items = [{"organization_id": each.organization_id} for each in self.services]
        return {"base_url": self.base_url, "access_token": SHARED, "organizations": items}
