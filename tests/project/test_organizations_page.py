"""The configurations in `docs/organizations.md` are valid, and its example works."""

import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from tap_audit_events.config.environment import settings_of
from tap_audit_events.config.settings import read_settings
from tests.integrations.pipeline import PROJECT
from tests.loaders.loader import environment_of
from tests.project.pages import Section, sections, shell

PAGE = sections("organizations.md")
SETTINGS = PAGE["Settings"]
(EXAMPLE,) = [part for title, part in PAGE.items() if title.startswith("Example")]


def with_tokens(config: dict[str, object], folder: Path) -> dict[str, object]:
    """Return the configuration with token files that exist."""
    token = folder / "token"
    token.write_text("acme_pat_token")
    text = json.dumps(config)
    for path in ("audit-events-token-of-a-subsidiary", "audit-events-token"):
        text = text.replace(f"/run/secrets/{path}", str(token))
    found: dict[str, object] = json.loads(text)
    return found


def test_the_configurations_of_the_page_are_valid(tmp_path: Path) -> None:
    """The page shows one in `config.json` and one in `meltano.yml`."""
    config = json.loads(SETTINGS.files["config.json"])
    assert len(read_settings(with_tokens(config, tmp_path)).organizations) == 3
    (text,) = yaml_of(SETTINGS)
    (plugin,) = yaml.safe_load(text)["plugins"]["extractors"]
    assert len(read_settings(with_tokens(plugin["config"], tmp_path)).organizations) == 2


def yaml_of(section: Section) -> list[str]:
    return [part.split("```")[0] for part in section.text.split("```yaml\n")[1:]]


def test_the_variable_of_the_page_is_valid(tmp_path: Path) -> None:
    """The variable holds the list as JSON."""
    (command,) = SETTINGS.commands
    done = shell(f"{command}; env", tmp_path, {"PATH": os.environ["PATH"]})
    variables = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    given = settings_of(variables)
    more = {"base_url": "https://api.example.com", "access_token": "acme_pat_token"}
    assert len(read_settings(given | more).organizations) == 2


@pytest.mark.loaders
def test_the_example_of_the_page_loads_fifty_organizations(tmp_path: Path) -> None:
    """One organization fails in the first run, and is loaded by the second."""
    EXAMPLE.write_files(tmp_path)
    (tmp_path / "bin").mkdir()
    for name, module in (("audit-events-sandbox", "sandbox.cli"), ("tap-audit-events", "__main__")):
        script = f'#!/bin/sh\nexec "{sys.executable}" -m tap_audit_events.{module} "$@"\n'
        (tmp_path / "bin" / name).write_text(script)
        (tmp_path / "bin" / name).chmod(0o755)
    programs = f"{tmp_path / 'bin'}:{environment_of('target-jsonl')}:{os.environ['PATH']}"
    environment = {"PATH": programs, "HOME": str(tmp_path), "PYTHONPATH": str(PROJECT)}
    (command,) = EXAMPLE.commands
    done = shell(command, tmp_path, environment)
    *lines, count = done.stdout.strip().splitlines()
    assert int(count) == 2000, done.stdout + done.stderr
    assert "AE-ORGANIZATIONS: " in lines[0]
    assert "1 of 50" in lines[0]
    assert "AE-403: 6f1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47: " in lines[1]
    texts = [path.read_text().splitlines() for path in tmp_path.glob("audit_events*.jsonl")]
    records = [json.loads(line) for text in texts for line in text]
    keys = {(each["organization_id"], each["id"]) for each in records}
    assert len(keys) == 2000
    assert len({key[0] for key in keys}) == 50
