"""Settings from environment variables, whose values are always strings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from tap_audit_events.config.schema import ENVIRONMENT_PREFIX


def read_environment(
    environment: Mapping[str, str], properties: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The settings in environment variables: the prefix and the setting's name, in capitals.

    A variable with the prefix that is not a setting is in the result without a value, so that it
    is warned about like any other unknown setting. No ``.env`` file is read.
    """
    names = {name: f"{ENVIRONMENT_PREFIX}{name.upper()}" for name in properties}
    texts = {name: environment[key] for name, key in names.items() if key in environment}
    unknown = unknown_settings(environment, properties)
    return parse_settings(texts, properties) | dict.fromkeys(unknown)


def parse_settings(
    texts: Mapping[str, str], properties: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Convert the texts of environment variables to the types of their settings' schemas.

    A text that does not fit its type stays a string, so that its validator refuses it. A list is
    JSON, or strings separated by commas.
    """
    return {name: _parse(text, properties[name].get("type", ())) for name, text in texts.items()}


def _parse(text: str, types: str | Sequence[str]) -> Any:
    first_type = types if isinstance(types, str) else next(iter(types), "string")
    try:
        return _PARSERS.get(first_type, str)(text)
    except (ValueError, RecursionError):
        return text


def unknown_settings(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Names of environment variables with the tap's prefix that are not settings, without prefix.

    Meltano sets variables with two underscores after the prefix; they do not count.
    """
    prefix, known = ENVIRONMENT_PREFIX, {*known, "loglevel"}
    return [
        name.removeprefix(prefix).lower()
        for name in names
        if name.startswith(prefix)
        and not name.startswith(f"{prefix}_")
        and name.removeprefix(prefix).lower() not in known
    ]


def _parse_list(text: str) -> Any:
    if text.lstrip().startswith("["):
        return json.loads(text)
    return [item.strip() for item in text.split(",")]


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "integer": int,
    "number": float,
    "boolean": lambda text: {"true": True, "false": False}.get(text.lower(), text),
    "object": json.loads,
    "array": _parse_list,
}
