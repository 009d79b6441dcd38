"""The commands in `docs/image.md` work with the image, with buildah in place of podman."""

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tap_audit_events.sandbox import Service, generate, serve
from tests.integrations.image.built_image import BuiltImage
from tests.integrations.pipeline import NOON
from tests.project.pages import sections, shell

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(900)]

PAGE = sections("image.md")
EVENTS = list(generate(120, days=3, seed=1, until=NOON))
PODMAN = """#!/bin/sh
set -eu
test "$1" = run
shift
options=""
while [ "${1#--}" != "$1" ]; do
  case $1 in
    --rm | --read-only) ;;
    --volume) options="$options --volume $2"; shift ;;
    *) exit 64 ;;
  esac
  shift
done
test "$1" = tap-audit-events
shift
"""
"""A `podman run` that knows the options of the page; a line that is added runs the image."""


@pytest.fixture
def programs(image: BuiltImage, tmp_path: Path) -> str:
    """A search path with a podman that runs the image with buildah."""
    buildah = " ".join([*image.buildah.command, "run", "--network", "host"])
    entry_point = " ".join(image.config["Entrypoint"])
    script = f'{PODMAN}exec {buildah} $options {image.container} -- {entry_point} "$@"\n'
    path = tmp_path / "bin" / "podman"
    path.parent.mkdir()
    path.write_text(script)
    path.chmod(0o755)
    return f"{path.parent}:{os.environ['PATH']}"


def test_each_command_runs(image: BuiltImage, programs: str, tmp_path: Path) -> None:
    """The commands are run in a folder with the file of the page and the token."""
    service = Service()
    service.add(EVENTS)
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o777)
    section = PAGE["Run"]
    section.write_files(folder)
    (folder / "token").write_text(service.access_token)
    with serve(service) as server:
        config = json.loads((folder / "config.json").read_text())
        config |= {"base_url": server.base_url, "organization_id": service.organization_id}
        (folder / "config.json").write_text(json.dumps(config))
        assert len(section.commands) == 3
        for command in section.commands:
            done = shell(command, folder, image.buildah.environment | {"PATH": programs})
            assert done.returncode == 0, (command, done.stderr)
    assert service.violations == []
    assert (folder / "events.jsonl").read_text().count('"RECORD"') == len(EVENTS)
    assert (folder / "state.json").exists()
    assert pq.read_metadata(folder / "events.parquet").num_rows == len(EVENTS)
