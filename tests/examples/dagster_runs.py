"""Runs `examples/dagster_project` in a Dagster instance of the test's own."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow.parquet as pq

from tap_audit_events.sandbox import Service
from tests.examples.environments import TIMEOUT_SECONDS, python_of
from tests.integrations.pipeline import PROJECT

EXAMPLE = PROJECT / "examples" / "dagster_project"
DRIVER = Path(__file__).with_name("dagster_driver.py")
OUTPUT = "output.txt"


@dataclass
class Instance:
    """A Dagster instance in a folder, and the organizations that it exports.

    Attributes:
        services: by the name of the organization.
        urls: of the services.
    """

    folder: Path
    services: Mapping[str, Service]
    urls: Mapping[str, str]
    first_day: str

    def __post_init__(self) -> None:
        (self.folder / "home").mkdir()
        shutil.copy(EXAMPLE / "dagster.yaml", self.folder / "home")
        shutil.copy(EXAMPLE / "workspace.yaml", self.folder)
        organizations = {
            name: {"base_url": self.urls[name], "organization_id": service.organization_id}
            for name, service in self.services.items()
        }
        document = {"first_day": self.first_day, "organizations": organizations}
        (self.folder / "organizations.json").write_text(json.dumps(document))

    @property
    def token(self) -> str:
        (token,) = {service.access_token for service in self.services.values()}
        return token

    @property
    def environment(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if "AUDIT_EVENTS" not in key}
        return {
            **inherited,
            "HOME": str(self.folder),
            "PYTHONPATH": f"{PROJECT}:{EXAMPLE}",
            "DAGSTER_HOME": str(self.folder / "home"),
            "AUDIT_EVENTS_ORGANIZATIONS": str(self.folder / "organizations.json"),
            "AUDIT_EVENTS_FOLDER": str(self.folder / "events"),
            "TAP_AUDIT_EVENTS_ACCESS_TOKEN": self.token,
        }

    @contextmanager
    def starting(self, *command: str | Path) -> Iterator["subprocess.Popen[str]"]:
        """A process in the environment of Dagster, which ends with the block at the latest.

        Its log is added to a file. It leads a process group, so that its children end too.
        """
        log: IO[bytes]
        with (self.folder / OUTPUT).open("ab") as log:
            process = subprocess.Popen(
                [python_of("dagster"), *command],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
            with process:
                try:
                    yield process
                finally:
                    if process.poll() is None:
                        process.terminate()

    def run(self, *command: str | Path) -> str:
        """Run a process until it ends with 0, and return what it printed."""
        with self.starting(*command) as process:
            printed, _ = process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode == 0, (self.folder / OUTPUT).read_text()[-5000:]
        return printed

    def drive(self, *arguments: str) -> Any:
        """Run a command of the driver, and return its result."""
        return json.loads(self.run(DRIVER, *arguments))

    def path(self, organization: str, day: str) -> Path:
        folder = self.folder / "events" / f"organization={organization}" / f"day={day}"
        return folder / "audit_events.parquet"

    def column(self, organization: str, day: str, name: str) -> list[Any]:
        """A column of the file of a partition."""
        values: list[Any] = (
            pq.ParquetFile(self.path(organization, day)).read([name])[name].to_pylist()
        )
        return values

    def check_discreet(self) -> None:
        """Check that no log, no database of the instance and no export has the token."""
        for path in self.folder.rglob("*"):
            if path.is_file():
                assert self.token.encode() not in path.read_bytes(), path
