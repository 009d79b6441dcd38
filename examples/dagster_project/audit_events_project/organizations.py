"""Reads the organizations and the first day from the file that AUDIT_EVENTS_ORGANIZATIONS names."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT_FILE = Path(__file__).resolve().parent.parent / "organizations.json"


@dataclass(frozen=True)
class Organization:
    """The URL and the ID with which the events of an organization are read."""

    base_url: str
    organization_id: str


def read_organizations() -> tuple[str, dict[str, Organization]]:
    """Return the first day to export, and the organizations by the names of their partitions."""
    path = Path(os.environ.get("AUDIT_EVENTS_ORGANIZATIONS") or DEFAULT_FILE)
    document = json.loads(path.read_text())
    organizations = {
        name: Organization(**fields) for name, fields in document["organizations"].items()
    }
    return document["first_day"], organizations
