"""The standard tests of `airbyte-cdk`, run in its own environment against the executable.

They expect a connector written in Python with `airbyte-cdk`, or a Docker image. `Executable` is
such a connector: each of its methods runs a command of the real source and passes on its messages.
"""

import logging
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
from airbyte_cdk.models import (
    AirbyteCatalog,
    AirbyteConnectionStatus,
    AirbyteMessage,
    AirbyteMessageSerializer,
    ConnectorSpecification,
)
from airbyte_cdk.test import standard_tests

SOURCE = os.environ["SOURCE_EXECUTABLE"]
FOLDER = Path(os.environ["CONNECTOR_FOLDER"])
"""The folder of the connector, with the configuration of the tests."""


class Executable:
    """The source, with the interface that the tests use; it reads each setting from its file."""

    message_repository = None
    check_config_against_spec = True

    def __init__(self) -> None:
        self._config = ""

    def spec(self, logger: logging.Logger) -> ConnectorSpecification:
        (message,) = _messages("spec")
        return message.spec

    def read_config(self, path: str) -> Any:
        self._config = path
        return orjson.loads(Path(path).read_bytes())

    def configure(self, config: Mapping[str, Any], folder: str) -> Mapping[str, Any]:
        return config

    def check(self, logger: logging.Logger, config: Mapping[str, Any]) -> AirbyteConnectionStatus:
        *_, message = _messages("check", "--config", self._config)
        return message.connectionStatus

    def discover(self, logger: logging.Logger, config: Mapping[str, Any]) -> AirbyteCatalog:
        *_, message = _messages("discover", "--config", self._config)
        return message.catalog

    def read_catalog(self, path: str) -> str:
        return path

    def read_state(self, path: str | None) -> str | None:
        return path

    def read(
        self, logger: logging.Logger, config: Mapping[str, Any], catalog: str, state: str | None
    ) -> Iterator[AirbyteMessage]:
        files = ["--config", self._config, "--catalog", catalog]
        return _messages("read", *files, *(["--state", state] if state else []))


def _messages(*arguments: str) -> Iterator[AirbyteMessage]:
    done = subprocess.run([SOURCE, *arguments], stdout=subprocess.PIPE, check=False)
    for line in done.stdout.split(b"\n")[:-1]:
        yield AirbyteMessageSerializer.load(orjson.loads(line))


class TestSource(standard_tests.SourceTestSuiteBase):  # type: ignore[misc]  # typed where it runs
    """The tests that need no Docker."""

    connector = Executable

    @classmethod
    def get_connector_root_dir(cls) -> Path:
        return FOLDER
