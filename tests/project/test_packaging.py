"""The files that users install and copy fit the tap: wheel, meltano.yml and sample_config.json.

`test_plugin_definition.py` tests the definition of the Meltano plugin.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.config.settings import read_settings

PROJECT = Path(__file__).resolve().parents[2]
MELTANO: dict[str, Any] = yaml.safe_load((PROJECT / "meltano.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, built like those of a release."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Iterator[ZipFile]:
    (path,) = dist.glob("*.whl")
    with ZipFile(path) as archive:
        yield archive


def metadata(wheel: ZipFile) -> "Message[str, str]":
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name))


def test_the_wheel_is_typed_and_holds_only_the_package(wheel: ZipFile) -> None:
    names = wheel.namelist()

    assert "tap_audit_events/py.typed" in names
    assert "tap_audit_events/sandbox/__init__.py" in names
    assert {name.partition("/")[0] for name in names} == {
        "tap_audit_events",
        f"tap_audit_events-{version('tap-audit-events')}.dist-info",
    }


def test_the_wheel_has_every_command(wheel: ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))

    assert wheel.read(name).decode().split() == [
        "[console_scripts]",
        *("audit-events", "=", "tap_audit_events.cli.__main__:main"),
        *("audit-events-sandbox", "=", "tap_audit_events.sandbox.cli:main"),
        *("source-audit-events", "=", "tap_audit_events.airbyte.__main__:main"),
        *("tap-audit-events", "=", "tap_audit_events.__main__:main"),
    ]


INTERRUPTED = """
import importlib, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[2]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
sys.exit(importlib.import_module(sys.argv[1]).main())
"""


@pytest.mark.parametrize(
    ("module", "loaded"),
    [
        ("", "singer_sdk"),
        (".airbyte", "tap_audit_events.config.process"),
        (".airbyte", "tap_audit_events.airbyte.command_line"),
        (".cli", "click"),
    ],
)
def test_ctrl_c_while_a_command_is_loaded_shows_no_traceback(module: str, loaded: str) -> None:
    """The imports can take a second, in which a user may press Ctrl-C."""
    command = [sys.executable, "-c", INTERRUPTED, f"tap_audit_events{module}.__main__", loaded]
    done = subprocess.run(command, capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, b"", b"")


INTERRUPTED_AT_ITS_START = """
import importlib, signal, sys
from tap_audit_events.config import process

process.guard_output = lambda arguments: signal.raise_signal(signal.SIGINT)
module = importlib.import_module(sys.argv.pop(1))
sys.exit(module.main())
"""


@pytest.mark.parametrize(
    ("module", "argument"), [("", "--about"), (".airbyte", ""), (".cli", "tail")]
)
def test_ctrl_c_at_the_start_of_a_command_shows_no_traceback(
    module: str, argument: str, settings: dict[str, Any]
) -> None:
    """The signal arrives before the command line is read."""
    name = f"tap_audit_events{module}.__main__"
    command = [sys.executable, "-c", INTERRUPTED_AT_ITS_START, name, argument]
    variables = {f"TAP_AUDIT_EVENTS_{key.upper()}": str(value) for key, value in settings.items()}
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, env=os.environ | variables
    )

    assert (done.returncode, done.stdout) == (128 + signal.SIGINT, "")
    assert "Traceback" not in done.stderr


def test_the_wheel_needs_only_the_maintained_backoff(wheel: ZipFile) -> None:
    """`backoff` and `python-backoff` install the same module, so only one may be required."""
    needed = metadata(wheel).get_all("Requires-Dist", [])
    names = {re.split(r"[^\w.-]", requirement)[0] for requirement in needed}

    assert "python-backoff" in names
    assert "backoff" not in names


def test_the_wheel_names_its_licence(wheel: ZipFile) -> None:
    described = metadata(wheel)

    assert described["License-Expression"] == "Apache-2.0"
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())


def test_the_sdist_holds_the_files_that_a_user_of_a_clone_needs(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"LICENSE", "Makefile", "README.md", "meltano.yml", "requirements/dev.txt"} <= names
    assert {
        ".ci/run",
        ".github/workflows/ci.yml",
        "demo/demo.py",
        "output/.gitignore",
        "plugins/extractors/tap-audit-events.yml",
        "tests/project/test_packaging.py",
    } <= names
    assert not [name for name in names if name.startswith((".venv/", ".tools/", ".meltano/"))]


@pytest.mark.parametrize("loader", MELTANO["plugins"]["loaders"], ids=lambda loader: loader["name"])
def test_loaders_are_pinned_from_the_ranges_in_meltano_yml(loader: dict[str, Any]) -> None:
    """The exact pins are generated from the same ranges."""
    text = (PROJECT / "requirements" / f"{loader['name']}.in").read_text(encoding="utf-8")
    asked = [line for line in text.splitlines() if not line.startswith("#")]

    assert loader["pip_url"].split() == asked


def test_the_libraries_that_build_the_tap_for_meltano_are_pinned_too() -> None:
    """Meltano builds the tap in a separate environment, which needs its own constraints."""
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    (install,) = re.findall(r"@(.*) \$\(MELTANO_INSTALL\) extractor", makefile)

    pins = "requirements/dev.txt"
    assert install == f"UV_CONSTRAINT={pins} UV_BUILD_CONSTRAINT={pins}"


def test_the_sample_configuration_loads_everything_with_the_fewest_settings() -> None:
    """It has only the required settings, and none that leaves events out."""
    config = json.loads((PROJECT / "sample_config.json").read_text(encoding="utf-8"))

    read_settings(config)

    assert list(config) == [*SETTINGS_SCHEMA["required"], "organization_id", "access_token"]
