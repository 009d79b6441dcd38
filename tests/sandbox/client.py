"""A plain client of the sandbox."""

from typing import Any, Self

import requests

from tap_audit_events.sandbox import ACCESS_TOKEN, ORGANIZATION_ID, Service


class Client:
    """Sends requests to one service, over a real connection."""

    def __init__(self, base_url: str, service: Service) -> None:
        self.service = service
        self.url = f"{base_url}/v1/organizations/{ORGANIZATION_ID}/audit_events"
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["Authorization"] = f"Bearer {ACCESS_TOKEN}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def get(self, **parameters: Any) -> requests.Response:
        """Request one page, with the parameters of the interface."""
        return self.session.get(self.url, params=parameters, allow_redirects=False)

    def page(self, **parameters: Any) -> tuple[list[str], str | None]:
        """Return the ids of one page and its cursor."""
        envelope = self.get(**parameters).json()
        return [event["id"] for event in envelope["auditEvents"]], envelope.get("nextCursor")

    def pages(self, **parameters: Any) -> list[list[str]]:
        """Return the ids of each page, read to the end by interface.md 4.1, rules 1 and 2."""
        ids, cursor = self.page(**parameters)
        pages = [ids]
        while cursor is not None:
            ids, cursor = self.page(**parameters, cursor=cursor)
            pages.append(ids)
        return pages

    def ids(self, **parameters: Any) -> list[str]:
        """Return the ids of all pages in one list."""
        return [event_id for page in self.pages(**parameters) for event_id in page]
