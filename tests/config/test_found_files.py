"""The tap reads only files that the user named, and writes none."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import singer_sdk

import tap_audit_events
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.config.test_surroundings import run_in_shell

FOUND = """
TAP_AUDIT_EVENTS_BASE_URL=http://127.0.0.1:1
TAP_AUDIT_EVENTS_ACCESS_TOKEN=acme_pat_of-somebody-else
TAP_AUDIT_EVENTS_START_DATE=2024-01-01T00:00:00Z
TAP_AUDIT_EVENTS_PAGE_SIZE=7
HTTPS_PROXY=http://127.0.0.1:1
REQUESTS_CA_BUNDLE=/nowhere.pem
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with packages; it and the folders above it contain `.env` files."""
    packages = tmp_path / "open-to-all" / "lib" / "packages"
    packages.mkdir(parents=True)
    for package in (singer_sdk, tap_audit_events):
        (folder,) = map(Path, package.__path__)
        (packages / folder.name).symlink_to(folder.resolve())
    for folder in (packages, *packages.parents[:3]):
        (folder / ".env").write_text(FOUND)
    return packages


@pytest.mark.parametrize(
    "source",
    ["--config config.json", "--config ENV", pytest.param("both", marks=pytest.mark.long)],
)
def test_no_file_named_env_is_read(
    source: str, service: Service, settings: dict[str, Any], installed: Path, tmp_path: Path
) -> None:
    """A file near the package or in the working folder could send the token to another host."""
    arguments = {"both": "--config config.json --config ENV"}.get(source, source)
    variables = {f"TAP_AUDIT_EVENTS_{name.upper()}": value for name, value in settings.items()}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    done = run_in_shell(
        settings,
        tmp_path,
        f'"$PYTHON" -m tap_audit_events {arguments}',
        PYTHONPATH=os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]),
        **({} if source == "--config config.json" else variables),
    )
    done.raise_for_exit_code()
    (request,) = service.requests
    assert request.status == 200
    assert "startTime" not in request.params
    assert request.params["pageSize"] == "1000"


def test_no_file_is_written(
    service: Service, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token and the events are only in files that the user names."""
    service.add([an_event()])
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    done = run_in_shell(settings, tmp_path, "TAP").raise_for_exit_code()
    assert len(done.ids) == 1
    assert [path.name for path in tmp_path.rglob("*")] == ["config.json"]
