"""Each command that the documents show for an installation works as written, in a clone."""

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Service, generate, serve
from tests.integrations.pipeline import NOON, PROJECT
from tests.project.pages import Section, sections, shell, unpacked_sdist, write_constraints

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

FROM_A_CLONE = re.compile(r"(?:uv tool|pipx|pip) install (?:'\.\[(?!spark)\w+\]'|\.)")
"""`make test-spark` installs the extra for Spark, which has 450 MB."""

PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
INSTALLS = sorted(
    {
        command
        for page in PAGES
        for command in Section(page.read_text()).commands
        if FROM_A_CLONE.fullmatch(command)
    }
)
VERSION = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
PAGE = sections("getting-started.md")
TOKEN_FILE = "token.txt"
LIBRARIES = {"arrow": "pyarrow", "duckdb": "duckdb", "postgres": "psycopg", "sandbox": "httptools"}


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked_sdist(tmp_path_factory.mktemp("sdist"))


@pytest.fixture
def clone(sdist: Path, tmp_path: Path) -> Path:
    """A copy of what a user clones, which a test may change."""
    return Path(shutil.copytree(sdist, tmp_path / "clone"))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables with a new home folder, into which everything is installed."""
    home = tmp_path / "home"
    programs = [home / ".local" / "bin", *(PROJECT / ".tools" / name / "bin" for name in TOOLS)]
    inherited = {name: text for name, text in os.environ.items() if "VIRTUAL_ENV" not in name}
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return inherited | {
        "HOME": str(home),
        "PATH": ":".join([*map(str, programs), os.environ["PATH"]]),
        "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(caches / "uv")),
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(caches / "pip")),
        "UV_PYTHON": sys._base_executable,  # type: ignore[attr-defined]
        "PIPX_DEFAULT_PYTHON": sys._base_executable,  # type: ignore[attr-defined]
    }


TOOLS = ("uv", "release")


def pinned(command: str, folder: Path) -> dict[str, str]:
    """Return variables that pin versions as `requirements/`, without hashes: a folder has none."""
    names = ["target-jsonl"] if "target-jsonl" in command else ["proof", "dev"]
    constraints = write_constraints(folder / "constraints.txt", *names)
    variables = ("UV_CONSTRAINT", "UV_BUILD_CONSTRAINT", "PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")
    return dict.fromkeys(variables, str(constraints))


def check(command: str, folder: Path, environment: dict[str, str]) -> str:
    home = Path(environment["HOME"])
    home.mkdir(exist_ok=True)
    done = shell(command, folder, environment | pinned(command, home))
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def install(command: str, clone: Path, environment: dict[str, str]) -> None:
    """Run an install command of the documents; pip installs into a new virtual environment."""
    if command.startswith("pip "):
        venv = Path(environment["HOME"]) / "venv"
        check(f"{shlex.quote(sys.executable)} -m venv {venv}", clone, environment)
        environment["PATH"] = f"{venv}/bin:{environment['PATH']}"
    check(command, clone, environment)


def python_of(environment: dict[str, str]) -> str:
    """Return the Python of the environment that the installed command belongs to."""
    found = shutil.which("tap-audit-events", path=environment["PATH"])
    assert found is not None
    assert found.startswith(environment["HOME"])
    return str(Path(found).resolve().with_name("python"))


@pytest.mark.parametrize("command", INSTALLS)
def test_each_way_to_install_provides_the_commands_and_the_extra(
    command: str, clone: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """The home folder is empty at first."""
    install(command, clone, environment)
    printed = check("tap-audit-events --version", tmp_path, environment)
    assert printed.startswith(f"tap-audit-events v{VERSION}")
    for extra in re.findall(r"\[(\w+)\]", command):
        check(f"{python_of(environment)} -c 'import {LIBRARIES[extra]}'", tmp_path, environment)


@pytest.fixture
def service() -> Iterator[tuple[Service, str]]:
    """A service with events, and its URL."""
    service = Service()
    service.add(generate(50, days=3, seed=1, until=NOON))
    with serve(service) as server:
        yield service, server.base_url


@pytest.mark.parametrize("program", ["uv tool", "pipx", "pip"])
def test_the_command_for_a_missing_extra_adds_it_and_keeps_the_others(
    program: str,
    service: tuple[Service, str],
    clone: Path,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    """The error ends with the command, which a user copies. It names no package of an index."""
    holds, base_url = service
    environment |= {
        "TAP_AUDIT_EVENTS_BASE_URL": base_url,
        "TAP_AUDIT_EVENTS_ORGANIZATION_ID": holds.organization_id,
        "TAP_AUDIT_EVENTS_ACCESS_TOKEN": holds.access_token,
    }
    install(f"{program} install '.[postgres]'", clone, environment)
    failed = shell("audit-events export --to a.duckdb", tmp_path, environment)
    error = failed.stderr.strip().splitlines()[-1]
    assert "AE-EXTRA: " in error
    command = error.partition(" everything else: ")[2]
    installs = shlex.split(command)
    assert not [word for word in installs if word.startswith("tap-audit-events[")]

    check(command, tmp_path, environment)
    check("audit-events export --to a.duckdb", tmp_path, environment)
    check(f"{python_of(environment)} -c 'import psycopg, duckdb'", tmp_path, environment)


def test_the_first_steps_lead_to_a_second_run_without_repeats(
    service: tuple[Service, str], clone: Path, tmp_path: Path, environment: dict[str, str]
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
            check(command, clone if FROM_A_CLONE.fullmatch(command) else folder, environment)
        if title == "Load what is new":
            files = folder.glob("audit_events*.jsonl")
            lines = [line for path in files for line in path.read_text().splitlines()]
            assert sorted(json.loads(line)["id"] for line in lines) == sorted(
                event["id"] for event in generate(50, days=3, seed=1, until=NOON)
            )
    assert holds.violations == []


@pytest.mark.parametrize(
    ("installed", "upgrade"),
    [
        ("uv tool install '.[duckdb]'", ""),
        ("pipx install '.[duckdb]'", "pipx upgrade tap-audit-events"),
        ("pip install '.[duckdb]'", "pip install '.[duckdb]'"),
    ],
)
def test_an_upgrade_installs_what_the_clone_has_now(
    installed: str, upgrade: str, clone: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    """The version stays, as between two commits; the extra stays too. uv's command is shown."""
    page = (PROJECT / "docs" / "upgrading.md").read_text()
    shown, *_ = Section(page).commands
    assert f"`{upgrade}`" in page or not upgrade
    install(installed, clone, environment)
    python = python_of(environment)
    with (clone / "tap_audit_events" / "__init__.py").open("a") as file:
        file.write("\nNEW = True\n")

    check(upgrade or shown, clone, environment)

    check(f"{python} -c 'import duckdb, tap_audit_events as t; t.NEW'", tmp_path, environment)
