"""Loaders for services in a cloud, in front of stand-ins: target-elasticsearch and z3-target-bigquery."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.loaders.loader import STREAM, Event, Loader
from tests.loaders.pipeline import written
from tests.loaders.stand_ins import StandIn


class TargetElasticsearch(Loader):
    """Writes documents; each loader has an index of its own."""

    package = "target-elasticsearch"
    executable = "target-elasticsearch"
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
    """Writes each record into one JSON column, by load jobs; each loader has a dataset of its own."""

    package = "z3-target-bigquery"
    executable = "target-bigquery"
    server: ClassVar[StandIn]

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(folder, settings)
        self._dataset = f"audit_{uuid4().hex}"
        self._before = len(self.server.rows)

    def place(self) -> Mapping[str, Any]:
        account = written(self.folder / "account.json", _service_account(self.server.url))
        return {"credentials_path": account, "project": "p", "dataset": self._dataset}

    def environment(self) -> Mapping[str, str]:
        """Whatever is meant for another host ends at a closed port."""
        return {
            "BIGQUERY_EMULATOR_HOST": self.server.url,
            "HTTPS_PROXY": "http://127.0.0.1:9",
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


def _service_account(url: str) -> dict[str, str]:
    """An account that nobody knows."""
    key = rsa.generate_private_key(65537, 2048)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {
        "type": "service_account",
        "project_id": "p",
        "private_key_id": "k",
        "private_key": text,
        "client_email": "loader@example.com",
        "token_uri": f"{url}/token",
    }
