"""Settings from environment variables, which hold texts only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from tap_audit_events.config.schema import ENVIRONMENT_PREFIX


def settings_from_texts(
    texts: Mapping[str, str], properties: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Settings given as texts, as environment variables are, in the types of their schemas.

    A text that does not fit stays as it is, to be refused like any other value. A list is JSON, or
    texts separated by commas.
    """
    return {
        name: _from_text(text, properties[name].get("type", ())) for name, text in texts.items()
    }


def _from_text(text: str, types: str | Sequence[str]) -> Any:
    kind = types if isinstance(types, str) else next(iter(types), "string")
    try:
        return _FROM_TEXT.get(kind, str)(text)
    except (ValueError, RecursionError):
        return text


def unknown_environment(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """The names of environment variables that look like settings of the tap and are none.

    Those with two underscores are Meltano's own.
    """
    prefix, known = ENVIRONMENT_PREFIX, {*known, "loglevel"}
    return [
        name.removeprefix(prefix).lower()
        for name in names
        if name.startswith(prefix)
        and not name.startswith(f"{prefix}_")
        and name.removeprefix(prefix).lower() not in known
    ]


def _list_from_text(text: str) -> Any:
    if text.lstrip().startswith("["):
        return json.loads(text)
    return [item.strip() for item in text.split(",")]


_FROM_TEXT: Final[dict[str, Callable[[str], Any]]] = {
    "integer": int,
    "number": float,
    "boolean": lambda text: {"true": True, "false": False}.get(text.lower(), text),
    "object": json.loads,
    "array": _list_from_text,
}
