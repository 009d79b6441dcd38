"""The image runs the tap, the command and the Airbyte source, and contains no secret."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tap_audit_events.sandbox import Service, generate, serve
from tests.airbyte.source import Output, a_catalog
from tests.integrations.image.built_image import BuiltImage
from tests.integrations.image.conftest import SECRET
from tests.integrations.pipeline import NOON, PROJECT
from tests.running import Run, settings_for

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(900)]

EVENTS = list(generate(2600, days=3, seed=1, until=NOON))
IDS = sorted(event["id"] for event in EVENTS)
USER = 1000
PROGRAMS = ["tap-audit-events", "audit-events", "source-audit-events"]
AIRBYTE = ["spec", "check", "discover", "read"]

Command = Callable[..., list[str]]


@pytest.fixture
def service() -> Service:
    service = Service()
    service.add(EVENTS)
    return service


@pytest.fixture
def data(service: Service, tmp_path: Path) -> Iterator[Path]:
    """The data folder of a container: settings for the service, a catalog, and the token."""
    folder = tmp_path / "data"
    folder.mkdir()
    with serve(service) as server:
        settings = settings_for(service, server.base_url)
        write(folder, "airbyte.json", json.dumps(settings))
        write(folder, "token", str(settings.pop("access_token")))
        write(folder, "config.json", json.dumps(settings | {"access_token_file": "/data/token"}))
        write(folder, "catalog.json", json.dumps(a_catalog()))
        os.chown(folder, USER, USER)
        yield folder
    assert service.violations == []


def write(folder: Path, name: str, text: str) -> None:
    """Write a file that only the image's user may read, like a mounted secret."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o400)
    os.chown(path, USER, USER)


@pytest.fixture(params=["buildah", "read-only"])
def command(request: pytest.FixtureRequest, image: BuiltImage) -> Command:
    """The command that runs the entry point, with buildah or in a read-only root."""
    commands = {"buildah": image.buildah_command, "read-only": image.read_only_command}
    return commands[request.param]


@pytest.fixture
def start(image: BuiltImage, data: Path) -> Callable[..., "subprocess.Popen[bytes]"]:
    """Starts the entry point in a read-only root."""

    def begin(*arguments: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            image.read_only_command(data, *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return begin


# The programs


def test_the_tap_reads_every_event(image: BuiltImage, command: Command, data: Path) -> None:
    """It reads the token from a mounted file."""
    done = image.run(command(data, "tap-audit-events", "--config", "config.json"))
    assert done.returncode == 0, done.stderr
    run = Run(done.stdout, done.stderr.decode(), done.returncode)
    assert sorted(run.ids) == IDS
    run.check_discreet([(data / "token").read_text()])


def test_the_command_exports_every_event(image: BuiltImage, command: Command, data: Path) -> None:
    """The image contains the libraries of Parquet and DuckDB."""
    for name in ("events.parquet", "events.duckdb"):
        done = image.run(
            command(data, "audit-events", "export", "--config", "config.json", "--to", name)
        )
        assert done.returncode == 0, done.stderr
        assert (data / name).stat().st_uid == USER
    assert sorted(pq.read_table(data / "events.parquet")["id"].to_pylist()) == IDS
    # Older versions of DuckDB, such as that of the tests, may not read the image's file.
    assert (data / "events.duckdb").stat().st_size > 0


@pytest.mark.parametrize("program", [["source-audit-events", "read"], ["read"]])
def test_the_source_reads_every_event(
    image: BuiltImage, command: Command, data: Path, program: list[str]
) -> None:
    """It is started by its name, or only by the command of the protocol, as Airbyte does."""
    options = ["--config", "/data/airbyte.json", "--catalog", "/data/catalog.json"]
    done = image.run(command(data, *program, *options))
    output = Output(done.stdout, done.stderr.decode(), done.returncode)
    assert (output.exit_code, output.log) == (0, "")
    assert sorted(output.ids) == IDS
    assert output.statuses[-1] == "COMPLETE"


@pytest.mark.parametrize("arguments", [[], ["sh"], ["--help"]])
def test_another_argument_is_refused_with_the_names_of_the_programs(
    image: BuiltImage, data: Path, arguments: list[str]
) -> None:
    done = image.run(image.read_only_command(data, *arguments))
    assert (done.returncode, done.stdout) == (2, b"")
    message = done.stderr.decode()
    assert message.startswith(f"'{''.join(arguments)}' is not a program of this image.")
    assert all(name in message for name in [*PROGRAMS, *AIRBYTE])


@pytest.mark.parametrize("program", ["tap-audit-events", "read"])
def test_sigterm_ends_the_program_with_its_state(
    start: Callable[..., "subprocess.Popen[bytes]"], program: str
) -> None:
    """The signal reaches the program itself, which exits with 143 after a STATE."""
    options = {
        "tap-audit-events": ["--config", "config.json"],
        "read": ["--config", "airbyte.json", "--catalog", "catalog.json"],
    }
    with start(program, *options[program]) as process:
        assert process.stdout
        while b'"RECORD"' not in process.stdout.readline():
            assert process.poll() is None
        # Most events still have to go through the pipe.
        process.send_signal(signal.SIGTERM)
        lines = process.stdout.read().splitlines()
    assert process.returncode == 128 + signal.SIGTERM
    kinds = [json.loads(line)["type"] for line in lines]
    assert 0 < kinds.count("RECORD") < len(EVENTS) - 1
    assert [kind for kind in kinds if kind in {"RECORD", "STATE"}][-1] == "STATE"


# The image


def test_the_user_is_not_root_and_writes_only_to_the_data_folder(
    image: BuiltImage, data: Path
) -> None:
    """Kubernetes can check the user, as it is a number. Temporary folders are writable too."""
    assert image.config["User"] == f"{USER}:{USER}"
    found = "-xdev -writable -not -type l -not -path '/proc/*' -not -path '/dev/*'"
    # Folders that the user may not enter make find fail.
    find = f"id -u; find / {found} 2>/dev/null || true"
    done = image.buildah("run", "--volume", f"{data}:/data", image.container, "sh", "-c", find)
    user, *writable = done.splitlines()
    assert user == str(USER)
    allowed = ("/data", "/tmp", "/var/tmp", "/run/lock")  # noqa: S108 - of every Debian
    assert [path for path in writable if not path.startswith(allowed)] == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_any_other_user_can_run_the_programs(image: BuiltImage, program: str) -> None:
    """OpenShift runs an image as a number without a name."""
    run = ["run", "--user", "54321:0", image.container, *image.config["Entrypoint"]]
    done = image.run([*image.buildah.command, *run, program, "--help"])
    # The source writes only messages of the protocol to stdout.
    assert b"usage: " in (done.stdout + done.stderr).lower()
    assert done.returncode == 0


def test_airbyte_finds_the_source_in_the_environment(image: BuiltImage, data: Path) -> None:
    """On Kubernetes, Airbyte starts AIRBYTE_ENTRYPOINT in a shell."""
    variables = dict(each.split("=", 1) for each in image.config["Env"])
    shell = ["sh", "-c", 'eval "$AIRBYTE_ENTRYPOINT check --config /data/airbyte.json"']
    assert variables["AIRBYTE_ENTRYPOINT"].endswith("/source-audit-events")
    done = image.run(
        [*image.buildah.command, "run", "--network", "host", "--volume", f"{data}:/data",
         image.container, "--", *shell]
    )  # fmt: skip
    assert b'"SUCCEEDED"' in done.stdout


def test_the_image_contains_only_the_pinned_versions(image: BuiltImage) -> None:
    """It contains neither pip nor the packages that build the wheel."""
    pins = (PROJECT / "requirements" / "image.txt").read_text()
    pinned = set(re.findall(r"^([\w-]+==[^\s;]+)", pins, re.MULTILINE))
    (packages,) = image.root.glob("opt/tap-audit-events/lib/python3*/site-packages")
    installed = {
        "{}=={}".format(*path.name.removesuffix(".dist-info").split("-", 1)).replace("_", "-")
        for path in packages.glob("*.dist-info")
    }
    (tap,) = {each for each in installed if each.startswith("tap-audit-events==")}
    assert {each.lower() for each in installed - {tap}} <= pinned
    assert {"duckdb", "pyarrow", "singer-sdk"} <= {each.partition("==")[0] for each in installed}


def test_no_secret_of_the_build_is_in_the_image(image: BuiltImage) -> None:
    """Files next to the Containerfile and pip's certificates are not in its files or history."""
    assert SECRET not in json.dumps(image.description)
    files = [path for path in image.root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert len(files) > 1000
