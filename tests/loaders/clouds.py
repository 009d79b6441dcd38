"""target-elasticsearch and z3-target-bigquery, which write to stand-ins for their services."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final
from uuid import uuid4

from tests.loaders.loader import STREAM, Event, Loader
from tests.loaders.pipeline import written
from tests.loaders.stand_ins import StandIn

CLOSED_PORT: Final = "http://127.0.0.1:9"
CREDENTIALS: Final = {
    "type": "authorized_user",
    **dict.fromkeys(("client_id", "client_secret", "refresh_token", "token"), "unknown"),
    "expiry": "2100-01-01T00:00:00Z",
}


class TargetElasticsearch(Loader):
    """Writes documents; each loader has an index of its own."""

    package = "target-elasticsearch"
    executable = "target-elasticsearch"
    documented_place: ClassVar[Mapping[str, Any]] = {"host": "127.0.0.1", "port": 9200}
    server: ClassVar[StandIn]

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(folder, settings)
        self._index = f"audit-{uuid4().hex}"

    def place(self) -> Mapping[str, Any]:
        port = self.server.server_port
        return {"host": "127.0.0.1", "port": port, "index_format": self._index}

    def rows(self) -> list[dict[str, Any]]:
        return [row["_source"] for row in self.server.rows if row["_index"] == self._index]

    def columns(self) -> dict[str, str]:
        return {name: "field" for row in self.rows()[:1] for name in row}


class TargetBigquery(Loader):
    """Writes each record into one JSON column; each loader has a dataset of its own."""

    package = "z3-target-bigquery"
    executable = "target-bigquery"
    has_key = False
    documented_place: ClassVar[Mapping[str, Any]] = {
        "credentials_path": "account.json",
        "project": "my-project",
        "dataset": "audit",
    }
    server: ClassVar[StandIn]

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(folder, settings)
        self._dataset = f"audit_{uuid4().hex}"
        self._before = len(self.server.rows)

    def place(self) -> Mapping[str, Any]:
        return {"project": "p", "dataset": self._dataset}

    def environment(self) -> Mapping[str, str]:
        """Credentials that need not be refreshed, and a closed port for requests to other hosts."""
        credentials = written(self.folder / "credentials.json", CREDENTIALS)
        return {
            "GOOGLE_APPLICATION_CREDENTIALS": credentials,
            "BIGQUERY_EMULATOR_HOST": self.server.url,
            "HTTPS_PROXY": CLOSED_PORT,
            "NO_PROXY": "127.0.0.1",
        }

    def rows(self) -> list[dict[str, Any]]:
        return self.server.rows[self._before :]

    def columns(self) -> dict[str, str]:
        path = f"/bigquery/v2/projects/p/datasets/{self._dataset}/tables/{STREAM}"
        fields = self.server.resources[path]["schema"]["fields"]
        return {each["name"]: each["type"] for each in fields if each["name"] == "data"}

    def event(self, row: dict[str, Any]) -> Event:
        event: Event = row["data"]
        return event

    def ids(self) -> list[str]:
        return sorted(row["data"]["id"] for row in self.rows())
