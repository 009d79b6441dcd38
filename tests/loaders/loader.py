"""What the tests need to know about a loader: its configuration, its command and its rows."""

import abc
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.loaders.pipeline import PROJECT, Command, written

STREAM: Final = "audit_events"

Event = dict[str, Any]


class Loader(abc.ABC):
    """A loader with a configuration of its own, and with a place of its own to store events.

    Attributes:
        package: its name in the package index, and that of its environment.
        executable: the command that it installs.
        documented_place: the settings that say where to store, as the documents show them.
        has_key: whether it stores an event once if it receives it twice.
        settings: further settings.
    """

    package: ClassVar[str]
    executable: ClassVar[str]
    documented_place: ClassVar[Mapping[str, Any]]
    has_key: ClassVar[bool] = True

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.folder = folder
        self.settings = dict(settings)

    def command(self) -> Command:
        """The command that runs the loader."""
        config = written(self.folder / "loader.json", {**self.settings, **self.place()})
        return [environment_of(self.package) / self.executable, "--config", config]

    def environment(self) -> Mapping[str, str]:
        """The variables that the loader needs."""
        return {}

    @abc.abstractmethod
    def place(self) -> Mapping[str, Any]:
        """The settings that say where to store."""

    @abc.abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Everything that the loader has stored, by column, without the columns that it adds."""

    @abc.abstractmethod
    def columns(self) -> dict[str, str]:
        """The type of each column, without those that the loader adds."""

    def event(self, row: dict[str, Any]) -> Event:
        """A row in the form of an event, with the names of the interface."""
        return row

    def ids(self) -> list[str]:
        """The ids of all rows, in order."""
        return sorted(row["id"] for row in self.rows())


def environment_of(package: str) -> Path:
    """The folder with the commands of a package, which must be installed."""
    folder = PROJECT / ".tools" / f"loader-{package}"
    assert (folder / ".installed").exists(), f"{package} is not installed: use `make test-loaders`"
    return folder / "bin"


def version_of(package: str, distribution: str | None = None) -> str:
    """The version of a package, or of another one in its environment."""
    code = f"import importlib.metadata as m; print(m.version({(distribution or package)!r}))"
    done = subprocess.run(
        [environment_of(package) / "python", "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def without_own_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without the columns that loaders add."""
    return {name: value for name, value in row.items() if not name.startswith("_sdc_")}
