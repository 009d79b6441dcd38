"""Settings from environment variables, whose values are always strings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from tap_audit_events.config.names import ENVIRONMENT_PREFIX
from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.config.sdk_settings import OF_THE_TAP

_KINDS: Final = {
    name: each["type"][0] for name, each in SETTINGS_SCHEMA["properties"].items()
} | OF_THE_TAP


def settings_of(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings in environment variables, each named by the prefix and the setting's name.

    The name may be in lower case; if a setting is given in both cases, upper case counts.

    A variable with the prefix that does not name a setting is in the result under its whole name,
    as None, so that a message can name it. The variable of the log level is left out, and so are
    those that Meltano sets, with one more underscore after the prefix. No ``.env`` file is read.

    A variable that is empty or blank is unset, as compose files and ``.env`` files leave it if they
    pass on a variable without a value.

    The texts are converted to the types of the settings. A text that does not fit its type stays a
    string, so that its check refuses it. A list is JSON, or strings separated by commas.
    """
    settings: dict[str, Any] = {}
    for variable, text in sorted(environment.items(), reverse=True):  # upper case last
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if not variable.startswith(ENVIRONMENT_PREFIX) or name.startswith("_") or not text.strip():
            continue
        if name in _KINDS:
            settings[name] = _parse(text, _KINDS[name])
        elif name != "loglevel":
            settings[variable] = None
    return settings


def _parse(text: str, kind: str) -> Any:
    try:
        return _PARSERS.get(kind, str)(text)
    except (ValueError, RecursionError):
        return text


def _parse_list(text: str) -> Any:
    if text.lstrip().startswith(("[", '"', "'")) or text.strip() == "null":
        return json.loads(text)  # text in quotes is not a list: its validator refuses it
    return [item.strip() for item in text.split(",")]


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "integer": int,
    "number": float,
    "boolean": lambda text: {"true": True, "false": False}.get(text.lower(), text),
    "object": json.loads,
    "array": _parse_list,
}
