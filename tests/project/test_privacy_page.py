"""The commands of `docs/privacy.md` leave out what they say."""

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tap_audit_events.api.columns import COLUMNS
from tap_audit_events.sandbox import Service, generate
from tests.integrations.pipeline import NOON
from tests.project.pages import sections, shell

EXPORTS = sections("privacy.md")["Exports"]
PERSONAL = {"actor_name", "actor_email", "entity_name", "entity_email", "context_request_ip",
            "context_request_id", "context_session_id", "action_details",
            "other_fields"}  # fmt: skip


def test_a_copy_of_an_export_has_no_personal_fields_and_can_be_verified(
    service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """A repair of the copy would undo it, and is refused."""
    service.add(generate(300, days=3, seed=7, until=NOON))
    EXPORTS.write_files(tmp_path)
    named = {f"TAP_AUDIT_EVENTS_{name.upper()}": value for name, value in settings.items()}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | named | {"PATH": path}

    for command in EXPORTS.commands:
        done = shell(command.replace("--config config.json ", ""), tmp_path, environment)
        assert done.returncode == 0, done.stderr
    verify = "audit-events verify --against shared/events.parquet"
    done = shell(verify, tmp_path, environment)
    repairs = [f"{verify} --repair r --repair-format {each}" for each in ("jsonl", "singer")]
    refused = [shell(each, tmp_path, environment) for each in repairs]

    shared = pq.read_schema(tmp_path / "shared" / "events.parquet").names
    assert set(shared) == COLUMNS.keys() - PERSONAL
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o700
    assert done.returncode == 0, done.stderr
    assert all("has no column for 'action.details, actor.name" in each.stderr for each in refused)
