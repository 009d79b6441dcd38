"""A release can be uploaded to a package index and installed from it."""

import functools
import http.server
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from datetime import date
from email import message_from_bytes
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.integrations.pipeline import PROJECT
from tests.project.pages import write_constraints

DESCRIBED: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
VERSION: str = DESCRIBED["version"]
TWINE = PROJECT / ".tools" / "release" / "bin" / "twine"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    return folder


def test_the_changelog_begins_with_this_version_and_its_date() -> None:
    """What follows a release is under `Unreleased`, above it."""
    text = (PROJECT / "CHANGELOG.md").read_text()
    released = re.findall(r"^## (\S+) \((.+)\)$", text, re.MULTILINE)
    version, day = released[0]
    assert version == VERSION
    assert date.fromisoformat(day).isoformat() == day


def test_every_link_of_the_package_begins_with_the_repository() -> None:
    """So its home is entered in one place."""
    urls = DESCRIBED["urls"]
    assert {"Repository", "Issues", "Documentation", "Changelog"} <= urls.keys()
    assert all(url.startswith(urls["Repository"]) for url in urls.values())


def test_the_wheel_names_its_maintainers_and_links(dist: Path) -> None:
    (path,) = dist.glob("*.whl")
    with ZipFile(path) as wheel:
        (name,) = (each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
        described = message_from_bytes(wheel.read(name))
    assert described["Version"] == VERSION
    assert described["Maintainer"] == DESCRIBED["maintainers"][0]["name"]
    links = dict(link.split(", ") for link in described.get_all("Project-URL", []))
    assert links == DESCRIBED["urls"]


@pytest.mark.long
def test_an_index_accepts_the_files(dist: Path) -> None:
    done = subprocess.run(
        [TWINE, "check", "--strict", *dist.iterdir()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


class Silent(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without a line for each request."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index(dist: Path, tmp_path: Path) -> Iterator[str]:
    """The URL of an index on loopback that has only this release."""
    folder = tmp_path / "simple" / "tap-audit-events"
    folder.mkdir(parents=True)
    for path in dist.iterdir():
        (folder / path.name).symlink_to(path)
    handler = functools.partial(Silent, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/simple/"
        server.shutdown()
        thread.join()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_package_is_installed_from_an_index(index: str, tmp_path: Path) -> None:
    """Its dependencies come from the usual index, with the pins of the tests."""
    constraints = write_constraints(tmp_path / "constraints.txt", "dev")
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    install = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    install += ["--extra-index-url", index, "--constraint", str(constraints)]
    done = subprocess.run(
        [*install, f"tap-audit-events=={VERSION}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = subprocess.run(
        [venv / "bin" / "tap-audit-events", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.startswith(f"tap-audit-events v{VERSION}, ")
    (typed,) = venv.glob("lib/*/site-packages/tap_audit_events/py.typed")
    assert typed.is_file()
