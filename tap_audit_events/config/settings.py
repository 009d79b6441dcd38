"""Reads the settings of a run from a configuration, and names all problems together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime
from functools import cache
from logging import Logger
from pathlib import Path
from typing import Any, Final

from msgspec.structs import asdict, replace

from tap_audit_events.config.access_token import (
    PAT_MARK,
    mask_possible_tokens,
    others_may_read,
    read_token_file,
)
from tap_audit_events.config.declaration import Organization, Settings
from tap_audit_events.config.fields import convert, fields_of, read_fields, set_values
from tap_audit_events.config.names import ENVIRONMENT_PREFIX
from tap_audit_events.config.schema import SETTINGS, SETTINGS_SCHEMA
from tap_audit_events.config.sdk_settings import OF_THE_TAP
from tap_audit_events.config.unknown_settings import problems_of_names, warnings_of_names
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.errors.redacted_output import redact_record
from tap_audit_events.errors.redaction import register_secret
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.record_shape import RecordShape

__all__ = [
    "Settings", "checked_settings", "instant_of_setting", "override", "read_settings",
    "register_secrets", "shape_to_discover", "token_warnings",
]  # fmt: skip

_REQUIRED: Final = {
    "base_url": (),
    "organization_id": ("organizations",),
    "access_token": ("organizations", "access_token_file"),
}
"""The settings that are required, unless one of these is set instead."""

_PAIRS: Final = (("organization_id", "organizations"), ("access_token", "access_token_file"))
"""Settings of which only one may be set."""

_ONE: Final = "set only one of them"

_FREE_TEXTS: Final = (
    "base_url", "action_types", "exclude_action_types", "user_agent", "quarantine_file"
)  # fmt: skip
"""Settings that may be any text and are not secret; the token must not be in them."""

_NAMES_OF_WORDS: Final = {
    name for name, schema in SETTINGS_SCHEMA["properties"].items() if not schema.get("secret")
} | {*OF_THE_TAP}
"""Settings whose texts may have `PAT_MARK` in them without being a token."""


def register_secrets(config: Mapping[str, Any]) -> None:
    """Mask the access token, and every text that could be one in any setting, from now on."""
    items = config.get("organizations")
    holders = [config, *(items if isinstance(items, list | tuple) else [])]
    given = [each.get("access_token") for each in holders if isinstance(each, Mapping)]
    tokens = [str(each or "").strip() for each in given]
    register_secret(*tokens, *(token.strip("\"'") for token in tokens))
    misplaced = {name: each for name, each in config.items() if name not in _NAMES_OF_WORDS}
    mask_possible_tokens(misplaced, even_words=True)
    mask_possible_tokens(config)


def override(config: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a configuration, overridden by those of a later source.

    Of two settings that exclude each other, the one of the later source counts.
    """
    given = set_values(later).keys()
    replaced = {name for pair in _PAIRS if given & {*pair} for name in pair}
    return {name: config[name] for name in config.keys() - replaced} | dict(later)


def checked_settings(
    config: Mapping[str, Any],
    logger: Logger,
    *,
    known: Collection[str] = SETTINGS,
    environment: str = "",
    from_yaml: bool = False,
) -> Settings:
    """Read settings as `read_settings` does; mask secrets from now on; log warnings."""
    register_secrets(config)
    logger.addFilter(redact_record)
    settings = read_settings(config, known=known, environment=environment, from_yaml=from_yaml)
    for warning in [*warnings_of_names(config, known), *token_warnings(settings)]:
        logger.warning("%s", warning)
    return settings


def read_settings(
    config: Mapping[str, Any],
    *,
    known: Collection[str] = SETTINGS,
    environment: str = "",
    from_yaml: bool = False,
) -> Settings:
    """Check a configuration. A null value or an empty text is treated as unset.

    Args:
        config: the settings by name.
        known: the names that it may have. No other is read, and no error proposes another.
        environment: text that names the environment in errors; empty if it is not a source.
        from_yaml: whether a program may have read the settings from YAML.

    Raises:
        SettingsError: one line for each setting to fix. No line contains the token.
    """
    given = set_values({name: config[name] for name in config.keys() & set(known)})
    problems = list(problems_of_names(config, known))
    problems.extend(_missing(given, known, environment))
    hint = _hint_of_yaml if from_yaml else lambda _: ""
    values = read_fields(Settings, given, problems, hint=hint)
    if {"organization_id", "organizations"} <= given.keys():
        problems.append(f"organization_id and organizations are both set: {_ONE}")
    _read_tokens(given, values, problems)
    if problems:
        raise SettingsError(problems)
    settings = Settings(**values)
    register_secret(*settings.tokens)  # also those from files
    if problems := list(_contradictions(settings)):
        raise SettingsError(problems)
    return settings


def instant_of_setting(name: str, value: date | str) -> Instant:
    """The instant of ``start_date`` or ``end_date``; `ValueError` is meant to follow a name."""
    found: Instant = convert(fields_of(Settings)[name], value, [], path=name)
    return found


def shape_to_discover(config: Mapping[str, Any]) -> RecordShape:
    """The shape of the records, from a configuration that need not be complete or valid."""
    return RecordShape(
        details_as_text=config.get("details_format") == "string",
        has_raw_event=config.get("raw_event") is True,
        organization_id="" if config.get("organizations") else None,
    )


def token_warnings(settings: Settings) -> list[str]:
    """Warnings about tokens of another kind, and about token files that other users may read."""
    tokens = {(each.access_token, each.access_token_file): None for each in settings.each()}
    warnings = (warning for token, path in tokens for warning in _warnings_of(token, path))
    return list(dict.fromkeys(warnings))


def _warnings_of(token: str, path: str | None) -> Iterator[str]:
    if PAT_MARK not in token:
        yield (
            f"{'access_token_file' if path else 'access_token'} does not contain 'pat_', as a"
            " personal access token of the service does: check that it is the right one"
        )
    if path and others_may_read(Path(path).stat()):
        yield (
            f"Users other than its owner may read access_token_file {sanitize(path)}: restrict it"
            " to the user that runs the tap (chmod 600)"
        )


def _missing(given: Mapping[str, Any], known: Collection[str], environment: str) -> Iterator[str]:
    for name, others in _REQUIRED.items():
        if given.keys().isdisjoint({name, *others}):
            by_file = name == "access_token" and "access_token_file" in known
            instead = ", or access_token_file to the path of a file with the token" * by_file
            variable = f" ({environment}: {ENVIRONMENT_PREFIX}{name.upper()})" * bool(environment)
            expected = fields_of(Settings)[name].expected
            yield f"{name} is missing: set it to {expected}{instead}{variable}"


def _hint_of_yaml(value: Any) -> str:
    """A hint about a text that may be a time that a YAML parser has written in another form."""
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return ""
    return "; in a YAML file write it in quotes"


def _read_tokens(given: Mapping[str, Any], values: dict[str, Any], problems: list[str]) -> None:
    """Read the files of tokens, and give each organization its own token or that of all."""
    read_file = cache(read_token_file)  # a file that several organizations name is read once
    shared = _token_of(values, "", read_file, problems)
    values |= shared
    has_shared = not given.keys().isdisjoint(shared)
    found: dict[str, Organization] = {}
    for number, each in enumerate(values.get("organizations", ())):
        path = f"organizations[{number}]"
        if each is None:  # its problem has been named
            continue
        own = _token_of(asdict(each), f"{path}.", read_file, problems)
        if not any(own.values()) and not has_shared:
            problems.append(
                f"{path} has no access_token or access_token_file, and neither is set for all"
                " organizations"
            )
        key = each.organization_id.lower()
        if key in found:
            problems.append(f"{path}.organization_id {key} is in the list twice")
        found[key] = replace(each, **(own if any(own.values()) else shared))
    values["organizations"] = tuple(found.values())


def _token_of(
    values: Mapping[str, Any], path: str, read_file: Callable[[str], str], problems: list[str]
) -> dict[str, str | None]:
    """The token of a run or of an organization, and the file that contains it, if there is one."""
    token, file = values.get("access_token", ""), values.get("access_token_file")
    if token and file:
        problems.append(f"{path}access_token and {path}access_token_file are both set: {_ONE}")
    elif file:
        try:
            token = read_file(file)
        except ValueError as error:
            problems.append(f"{path}access_token_file {error}")
    return {"access_token": token, "access_token_file": file}


def _contradictions(settings: Settings) -> Iterator[str]:
    """Problems with combinations of settings, each of which is valid by itself."""
    start, end = settings.start_date, settings.end_date
    if start is not None and end is not None and end < start:
        yield "end_date is before start_date: it must be the same or later"
    if both := [each for each in settings.exclude_action_types if each in settings.action_types]:
        names = ", ".join(map(sanitize, both))
        yield f"action_types and exclude_action_types both have {names}: remove it from one of them"
    for name in _FREE_TEXTS:
        text = str(getattr(settings, name)).lower()
        if any(PAT_MARK in token and token.lower() in text for token in settings.tokens):
            yield f"{name} contains the access token: remove it from there"
