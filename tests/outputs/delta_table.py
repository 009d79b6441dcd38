"""Delta tables into which a test exports: in a folder, and in an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import deltalake
import pytest

from tests.cli.command import Command, Done
from tests.cli.exported import Event
from tests.outputs.delta_log import in_delta
from tests.outputs.kind import Kind
from tests.outputs.object_store import ObjectStore


class DeltaFolder(Kind):
    """A Delta table in a folder. Of two writers, the one that commits first has won."""

    to = "delta:events/"
    is_locked = False

    def events(self) -> list[Event]:
        return in_delta(self.command.folder / "events")

    def ocsf(self) -> list[str]:
        return _ocsf_in(self.command.folder / "events")


class DeltaBucket(Kind):
    """A Delta table in a bucket."""

    is_locked = False

    def __init__(self, command: Command, store: ObjectStore) -> None:
        super().__init__(replace(command, environment=store.environment))
        self.store = store
        self.prefix = f"audit/{uuid4().hex}"
        self.to = f"delta:s3://{store.bucket}/{self.prefix}"

    @classmethod
    def from_request(cls, request: pytest.FixtureRequest, command: Command) -> DeltaBucket:
        return cls(command, request.getfixturevalue("store"))

    def events(self) -> list[Event]:
        folder = self.command.folder.with_name(uuid4().hex)
        return in_delta(self.store.download(self.prefix, folder))

    def ocsf(self) -> list[str]:
        folder = self.command.folder.with_name(uuid4().hex)
        return _ocsf_in(self.store.download(self.prefix, folder))

    def snapshot(self) -> Any:
        return self.store.keys(self.prefix)

    @contextmanager
    def full(self) -> Iterator[Callable[[], Done]]:
        """Nothing can be written, as the store refuses everything."""
        with self.store.refusing():
            yield self.export


def _ocsf_in(folder: Path) -> list[str]:
    texts: list[str] = deltalake.DeltaTable(folder).to_pyarrow_table()["ocsf"].to_pylist()
    return texts
