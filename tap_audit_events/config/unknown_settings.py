"""Names in a configuration that are not settings: misspelt ones would change what a run reads."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from tap_audit_events.config.fields import set_values
from tap_audit_events.config.names import ENVIRONMENT_PREFIX
from tap_audit_events.config.sdk_settings import OF_THE_TAP
from tap_audit_events.errors.exceptions import sanitize

OTHERS_OF_THE_SDK: Final = ("emit_activate_version_messages", "use_singer_decimal")
"""Settings that the SDK has for other taps."""


def problems_of_names(config: Mapping[str, Any], known: Collection[str]) -> Iterator[str]:
    """A problem for each name that is not a setting, unless it is in `warnings_of_names`."""
    for name in _unknown(config, known):
        if similar := _similar(name, known):
            prefix = ENVIRONMENT_PREFIX if _is_variable(name, config) else ""
            right = f"{prefix}{similar.upper()}" if prefix else similar
            yield f"{sanitize(name, 60)} is not a setting: did you mean {right}?"
        elif not _is_harmless(name, config):
            yield f"{sanitize(name, 60)} is not a setting, nor similar to one: remove it"


def warnings_of_names(config: Mapping[str, Any], known: Collection[str]) -> Iterator[str]:
    """A warning for each name that is not a setting and need not be a mistake.

    Another program may set a variable with the prefix: Kubernetes does, for a service of that name.
    """
    for name in _unknown(config, known):
        if _is_harmless(name, config) and not _similar(name, known):
            yield f"{sanitize(name, 60)} is not a setting and is ignored"


def warnings_of_tap_settings(config: Mapping[str, Any]) -> Iterator[str]:
    """A warning for each setting of `OF_THE_TAP`: users may believe that their maps mask values."""
    for name in sorted(set_values(config).keys() & set(OF_THE_TAP)):
        yield f"{name} shapes the records of the tap and is ignored here"


def _unknown(config: Mapping[str, Any], known: Collection[str]) -> Iterator[str]:
    """Unknown names, without those of platforms for themselves, such as Meltano's ``_select``."""
    return (name for name in sorted(config.keys() - set(known)) if not name.startswith("_"))


def _is_harmless(name: str, config: Mapping[str, Any]) -> bool:
    return name in OTHERS_OF_THE_SDK or _is_variable(name, config)


def _is_variable(name: str, config: Mapping[str, Any]) -> bool:
    """Whether a name is that of a variable: `read_environment` keeps it, without its value."""
    return config[name] is None and name.startswith(ENVIRONMENT_PREFIX)


def _similar(name: str, known: Collection[str]) -> str | None:
    """The setting that somebody may have meant: one like this name, or with its words."""
    if name in OTHERS_OF_THE_SDK:
        return None
    given = name.removeprefix(ENVIRONMENT_PREFIX).lower()
    words = set(given.split("_"))
    alike = difflib.get_close_matches(given, known, n=1, cutoff=0.7)
    return next(iter([*alike, *(each for each in known if words <= {*each.split("_")})]), None)
