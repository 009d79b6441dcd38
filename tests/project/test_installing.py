"""The README and `docs/getting-started.md` describe the installation and first steps correctly."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Service, generate, serve
from tests.integrations.pipeline import NOON, PROJECT
from tests.project.pages import Section, sections, shell

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

URL = re.compile(r"git\+https://\S+\.git")
README = Section((PROJECT / "README.md").read_text())
INSTALLS = [command for command in README.commands if URL.search(command)]
PAGE = sections("getting-started.md")
TOKEN_FILE = "token.txt"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables with a new home folder, into which everything is installed."""
    programs = [tmp_path / "bin", tmp_path / ".local" / "bin", PROJECT / ".tools" / "uv" / "bin"]
    inherited = {name: text for name, text in os.environ.items() if "VIRTUAL_ENV" not in name}
    return inherited | {
        "HOME": str(tmp_path),
        "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv")),
        "UV_PYTHON": sys._base_executable,  # type: ignore[attr-defined]
    }


def pinned(command: str, folder: Path) -> dict[str, str]:
    """Return variables that pin versions as `requirements/`, without hashes: a URL has none."""
    name = "target-jsonl" if "target-jsonl" in command else "dev"
    pins = (PROJECT / "requirements" / f"{name}.txt").read_text()
    constraints = folder / f"{name}.txt"
    constraints.write_text("\n".join(re.findall(r"^[^\s#]+==[^\\\n]+", pins, re.MULTILINE)))
    names = ("UV_CONSTRAINT", "UV_BUILD_CONSTRAINT", "PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")
    return dict.fromkeys(names, str(constraints))


def from_here(command: str) -> str:
    """Let the command install this copy of the repository, as its URL may not be reachable."""
    return URL.sub(f"git+{PROJECT.as_uri()}", command)


def check(command: str, folder: Path, environment: dict[str, str]) -> str:
    done = shell(command, folder, environment | pinned(command, Path(environment["HOME"])))
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def test_there_are_three_ways_to_install() -> None:
    """The test below tries each of them."""
    assert [command.partition(" ")[0] for command in INSTALLS] == ["uv", "pipx", "pip"]


@pytest.mark.parametrize("command", INSTALLS)
def test_each_way_to_install_provides_the_command(
    command: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    """The home folder is empty at first, and pip installs into a new virtual environment."""
    program = command.partition(" ")[0]
    if program == "pipx":
        check("uv tool install --quiet pipx", tmp_path, environment)
    if program == "pip":
        check(f"{shlex.quote(sys.executable)} -m venv venv", tmp_path, environment)
        environment["PATH"] = f"{tmp_path}/venv/bin:{environment['PATH']}"
    check(from_here(command), tmp_path, environment)
    found = check("command -v tap-audit-events", tmp_path, environment).strip()
    assert found.startswith(str(tmp_path))
    assert check("tap-audit-events --version", tmp_path, environment).startswith("tap-audit-events")


@pytest.fixture
def service() -> Iterator[tuple[Service, str]]:
    """A service with events, and its URL."""
    service = Service()
    service.add(generate(50, days=3, seed=1, until=NOON))
    with serve(service) as server:
        yield service, server.base_url


def test_the_first_steps_lead_to_a_second_run_without_repeats(
    service: tuple[Service, str], tmp_path: Path, environment: dict[str, str]
) -> None:
    """Each command is run in turn, in a new folder with the files of the page and a token."""
    holds, base_url = service
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / TOKEN_FILE).write_text(holds.access_token)
    for title, section in PAGE.items():
        for name, text in section.files.items():
            own = {"base_url": base_url, "organization_id": holds.organization_id}
            (folder / name).write_text(json.dumps(json.loads(text) | own))
        for command in section.commands:
            check(from_here(command), folder, environment)
        if title == "Load what is new":
            files = folder.glob("audit_events*.jsonl")
            lines = [line for path in files for line in path.read_text().splitlines()]
            assert sorted(json.loads(line)["id"] for line in lines) == sorted(
                event["id"] for event in generate(50, days=3, seed=1, until=NOON)
            )
    assert holds.violations == []


def test_the_page_shows_the_whole_upgrade(tmp_path: Path, environment: dict[str, str]) -> None:
    """The command of the page upgrades an installation by the first command of the README."""
    check(from_here(INSTALLS[0]), tmp_path, environment)
    upgrade, *_ = Section((PROJECT / "docs" / "upgrading.md").read_text()).commands
    check(upgrade, tmp_path, environment)
    done = subprocess.run(
        ["tap-audit-events", "--version"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
