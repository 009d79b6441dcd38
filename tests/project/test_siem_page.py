"""What docs/siem.md shows works: the unit of systemd and the manifest of Kubernetes."""

import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.conftest import command as command  # noqa: PLC0414 - a fixture
from tests.cli.exported import history
from tests.project.pages import sections
from tests.shipping.hec import TOKEN, Hec
from tests.shipping.receiver import Receiver

FILES = sections("siem.md")["Run it all the time"].files
UNIT = FILES["audit-events-ship.service"]
DOCUMENTS = {each["kind"]: each for each in yaml.safe_load_all(FILES["ship.yaml"])}
IDS = [each["id"] for each in history(3)]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(Hec()) as receiver:
        yield receiver


def runs(
    command: Command,
    receiver: Receiver,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    places: Mapping[str, Path],
) -> None:
    """Run a command of the page in other places, until all events have arrived; then SIGTERM."""

    def moved(text: str) -> str:
        for place, path in places.items():
            text = text.replace(place, str(path))
        return text.replace("https://splunk.example.com:8088", receiver.root)

    for path in places.values():
        path.mkdir(exist_ok=True)
        (path / "token").write_text(command.settings["access_token"])
        (path / "receiver").write_text(TOKEN)
    values = {name: moved(value) for name, value in environment.items()}
    del values["TAP_AUDIT_EVENTS_BASE_URL"], values["TAP_AUDIT_EVENTS_ORGANIZATION_ID"]
    settings = {name: value for name, value in command.settings.items() if name != "access_token"}
    own = Command(command.folder, settings, secrets=(TOKEN, command.settings["access_token"]))
    with own.started(*map(moved, arguments), **values) as run:
        receiver.wait_until(lambda: receiver.ids == IDS)
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM
        own.check_discreet(run.stderr.read().decode())
    assert [*command.folder.rglob("ship.state.json")]


def test_the_unit_sends_events(service: Service, command: Command, receiver: Receiver) -> None:
    """With the paths that systemd would fill in."""
    service.add(history(3))
    lines = UNIT.replace("\\\n", " ").splitlines()
    (start,) = [each.removeprefix("ExecStart=") for each in lines if each.startswith("ExecStart=")]
    _, *arguments = shlex.split(start)
    environment = dict(re.findall(r"^Environment=(\w+)=(.*)$", UNIT, re.MULTILINE))
    assert re.findall(r"^LoadCredential=(\w+):", UNIT, re.MULTILINE) == ["token", "receiver"]

    places = {"%d": command.folder / "credentials", "%S/audit-events": command.folder / "state"}
    runs(command, receiver, arguments, environment, places)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    path = tmp_path / "audit-events-ship.service"
    path.write_text(UNIT.replace("/usr/local/bin/audit-events", "/bin/true"))

    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=one", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_container_of_the_manifest_sends_events(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(history(3))
    pod: dict[str, Any] = DOCUMENTS["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    program, *arguments = container["args"]
    environment = {each["name"]: each["value"] for each in container["env"]}

    assert program == "audit-events"
    assert {each["name"] for each in pod["volumes"]} == {*mounts.values()}
    places = {path: command.folder / name for path, name in mounts.items()}
    runs(command, receiver, arguments, environment, places)


def test_only_one_pod_runs() -> None:
    """A new pod starts after the old one has ended, and has its volume."""
    deployment = DOCUMENTS["Deployment"]["spec"]
    (state,) = [
        each["persistentVolumeClaim"]["claimName"]
        for each in deployment["template"]["spec"]["volumes"]
        if "persistentVolumeClaim" in each
    ]

    assert (deployment["replicas"], deployment["strategy"]["type"]) == (1, "Recreate")
    assert state == DOCUMENTS["PersistentVolumeClaim"]["metadata"]["name"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels
