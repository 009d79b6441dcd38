"""Reads the file that says which action type is which activity of OCSF."""

from __future__ import annotations

from typing import Any

from tap_audit_events.config.input_files import read_json_file
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.ocsf.mapping import activity_problems


def read_ocsf_map(path: str) -> dict[str, Any]:
    """The activity of each action type in a file, for `OcsfMapping`.

    Raises:
        SettingsError: the file is not a JSON object, or has a key twice or an unknown activity.
    """
    activities = read_json_file("OCSF map", path, keys_repeat=False)
    if problems := activity_problems(activities):
        name = sanitize(path)
        raise SettingsError([f"The OCSF map file {name}: {each}" for each in problems], "AE-FILE")
    return activities
