"""The files that users install and copy fit the tap: wheel, meltano.yml and sample_config.json.

`test_plugin_definition.py` tests the definition of the Meltano plugin.
"""

import json
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
from zipfile import ZipFile

import pytest

from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.config.settings import read_settings

PROJECT = Path(__file__).resolve().parents[2]
TWINE = PROJECT / ".tools" / "release" / "bin" / "twine"


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


def test_the_wheel_needs_only_the_maintained_backoff(wheel: ZipFile) -> None:
    """`backoff` and `python-backoff` install the same module, so only one may be required."""
    needed = metadata(wheel).get_all("Requires-Dist", [])
    names = {re.split(r"[^\w.-]", requirement)[0] for requirement in needed}

    assert "python-backoff" in names
    assert "backoff" not in names


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


def test_the_sample_configuration_loads_everything_with_the_fewest_settings() -> None:
    """It has only the required settings, and none that leaves events out."""
    config = json.loads((PROJECT / "sample_config.json").read_text(encoding="utf-8"))

    read_settings(config)

    assert list(config) == [*SETTINGS_SCHEMA["required"], "organization_id", "access_token"]


@pytest.mark.long
def test_an_index_accepts_the_files(dist: Path) -> None:
    done = subprocess.run(
        [TWINE, "check", "--strict", *dist.iterdir()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2
