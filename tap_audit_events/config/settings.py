"""The settings of a run: read once from the configuration into a frozen value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from logging import Logger
from pathlib import Path
from typing import Any, Final

from tap_audit_events.config import validators
from tap_audit_events.config.access_token import (
    PAT_MARK,
    mask_possible_tokens,
    others_may_read,
    read_token_file,
)
from tap_audit_events.config.organizations import Organization, read_organizations
from tap_audit_events.config.schema import ENVIRONMENT_PREFIX, SETTINGS, SETTINGS_SCHEMA
from tap_audit_events.config.unknown_settings import (
    OF_THE_TAP,
    problems_of_names,
    warnings_of_names,
)
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.errors.redacted_output import redact_record
from tap_audit_events.errors.redaction import register_secret
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.record_shape import RecordShape


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """The settings of one run, each checked (interface.md, sections 4.1, 5 and 8).

    If `organizations` is set, `organization_id` is empty, `access_token` may be empty, and `each`
    yields the settings of each organization; only those have `is_one_of_several`.
    """

    base_url: str
    organization_id: str
    access_token: str
    access_token_file: str | None
    organizations: tuple[Organization, ...]
    start_date: Instant | None
    end_date: Instant | None
    action_types: tuple[str, ...]
    page_size: int
    concurrency: int
    lookback_seconds: int
    request_timeout_seconds: float
    max_retries: int
    max_response_megabytes: int
    details_format: str
    raw_event: bool
    user_agent: str
    is_one_of_several: bool = False

    @property
    def record_shape(self) -> RecordShape:
        return RecordShape(
            details_as_text=self.details_format == "string",
            has_raw_event=self.raw_event,
            organization_id=(
                self.organization_id if self.is_one_of_several or self.organizations else None
            ),
        )

    @property
    def tokens(self) -> tuple[str, ...]:
        own = (each.access_token for each in self.organizations)
        shared = [self.access_token] if self.access_token else []
        return tuple(dict.fromkeys([*shared, *own]))

    def each(self) -> Iterator[Settings]:
        if not self.organizations:
            yield self
        for each in self.organizations:
            yield replace(self, **asdict(each), organizations=(), is_one_of_several=True)


_VALIDATORS: Final[dict[str, Callable[[Any], Any]]] = {
    "base_url": validators.base_url,
    "organization_id": validators.organization_id,
    "access_token": validators.access_token,
    "access_token_file": validators.access_token_file,
    "start_date": validators.start_date,
    "end_date": validators.end_date,
    "action_types": validators.action_types,
    "page_size": validators.integer(1, 1000),
    "concurrency": validators.integer(1, 32),
    "lookback_seconds": validators.integer(0),
    "request_timeout_seconds": validators.seconds(3600),
    "max_retries": validators.integer(0),
    "max_response_megabytes": validators.integer(1, 2000),
    "details_format": validators.one_of("object", "string"),
    "raw_event": validators.boolean,
    "user_agent": validators.user_agent,
}

_TIMES: Final = ("start_date", "end_date")
_IN_QUOTES: Final = "; in a YAML file write it in quotes"

_REPLACED_BY: Final = {
    "organization_id": ("organizations",),
    "access_token": ("organizations", "access_token_file"),
}
"""The settings that may be set instead of a required one."""

_PAIRS: Final = (
    {"organization_id", "organizations"},
    {"access_token", "access_token_file"},
)
"""Settings of which only one may be set."""

_SENT_TEXTS: Final = ("base_url", "action_types", "user_agent")
"""Settings that may be any text and are sent to the service; the token must not be in them."""


_NAMES_OF_WORDS: Final = {
    name for name, schema in SETTINGS_SCHEMA["properties"].items() if not schema.get("secret")
} | {*OF_THE_TAP}
"""Settings whose texts may have `PAT_MARK` in them without being a token."""


def register_secrets(config: Mapping[str, Any]) -> None:
    """Mask the access token, and every text that could be one in any setting, from now on."""
    tokens = [str(each or "").strip() for each in _tokens(config)]
    register_secret(*tokens, *(token.strip("\"'") for token in tokens))
    misplaced = {name: each for name, each in config.items() if name not in _NAMES_OF_WORDS}
    mask_possible_tokens(misplaced, even_words=True)
    mask_possible_tokens(config)


def override(config: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a configuration, overridden by those of a later source.

    Of two settings that exclude each other, the one of the later source counts.
    """
    given = validators.set_values(later).keys()
    replaced = {name for pair in _PAIRS if pair & given for name in pair}
    return {name: config[name] for name in config.keys() - replaced} | dict(later)


def checked_settings(
    config: Mapping[str, Any],
    logger: Logger,
    *,
    known: Collection[str] = SETTINGS,
    environment: str = "",
    from_yaml: bool = False,
    allows_token_file: bool = True,
) -> Settings:
    """Read settings as `read_settings` does; mask secrets from now on; log warnings."""
    register_secrets(config)
    logger.addFilter(redact_record)
    settings = read_settings(
        config,
        known=known,
        environment=environment,
        from_yaml=from_yaml,
        allows_token_file=allows_token_file,
    )
    for warning in [*warnings_of_names(config, known), *token_warnings(settings)]:
        logger.warning("%s", warning)
    return settings


def read_settings(
    config: Mapping[str, Any],
    *,
    known: Collection[str] = SETTINGS,
    environment: str = "",
    from_yaml: bool = False,
    allows_token_file: bool = True,
) -> Settings:
    """Check a configuration. A null value or an empty text is treated as unset.

    Args:
        config: the settings by name.
        known: the names that it may have. No other is read.
        environment: text that names the environment in errors; empty if it is not a source.
        from_yaml: whether a program may have read the settings from YAML.
        allows_token_file: whether errors may propose the setting ``access_token_file``.

    Raises:
        SettingsError: one line for each setting to fix. No line contains the token.
    """
    given = validators.set_values({name: config[name] for name in config.keys() & set(known)})
    values: dict[str, Any] = {"organizations": ()}
    problems = list(problems_of_names(config, known))
    for name, validate in _VALIDATORS.items():
        try:
            values[name] = (
                validate(given[name])
                if name in given
                else _default(name, given, environment, allows_token_file=allows_token_file)
            )
        except ValueError as error:
            is_time = (
                from_yaml and name in _TIMES and validators.is_changed_by_yaml(given.get(name))
            )
            problems.append(f"{name} {error}{_IN_QUOTES if is_time else ''}")
    if "access_token" in given and "access_token_file" in given:
        problems.append("access_token and access_token_file are both set: set only one of them")
    elif path := values.get("access_token_file"):
        try:
            values["access_token"] = read_token_file(path)
        except ValueError as error:
            problems.append(f"access_token_file {error}")
    if "organizations" in given:
        problems += _read_organizations(given, values)
    if problems:
        raise SettingsError(problems)
    settings = Settings(**values)
    register_secret(*settings.tokens)  # also those from files
    if problems := list(_contradictions(settings)):
        raise SettingsError(problems)
    return settings


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


def _tokens(config: Mapping[str, Any]) -> Iterator[Any]:
    """The tokens in a configuration, which need not be valid."""
    yield config.get("access_token")
    items = config.get("organizations")
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict):
            yield item.get("access_token")


def _read_organizations(given: Mapping[str, Any], values: dict[str, Any]) -> list[str]:
    """Put the organizations into `values`; return one text for each thing to fix."""
    if "organization_id" in given:
        return ["organization_id and organizations are both set: set only one of them"]
    has_token = not given.keys().isdisjoint(("access_token", "access_token_file"))
    try:
        values["organizations"] = read_organizations(
            given["organizations"],
            token=values.get("access_token", "") if has_token else None,
            token_file=values.get("access_token_file"),
        )
    except ValueError as error:
        return [f"organizations{problem}" for problem in error.args]
    return []


def _default(
    name: str, given: Mapping[str, Any], environment: str, *, allows_token_file: bool
) -> Any:
    """The value of a setting that is unset; `ValueError` if it is required."""
    if not given.keys().isdisjoint(_REPLACED_BY.get(name, ())):
        return ""
    if name in validators.EXPECTED:
        by_file = allows_token_file and name == "access_token"
        instead = ", or access_token_file to the path of a file with the token" if by_file else ""
        variable = f"{ENVIRONMENT_PREFIX}{name.upper()}"
        elsewhere = f" ({environment}: {variable})" if environment else ""
        raise ValueError(f"is missing: set it to {validators.EXPECTED[name]}{instead}{elsewhere}")
    if name == "action_types":
        return ()
    return SETTINGS_SCHEMA["properties"][name].get("default")


def _contradictions(settings: Settings) -> Iterator[str]:
    """Problems with combinations of settings, each of which is valid by itself."""
    start, end = settings.start_date, settings.end_date
    if start is not None and end is not None and end < start:
        yield "end_date is before start_date: it must be the same or later"
    for name in _SENT_TEXTS:
        text = str(getattr(settings, name)).lower()
        if any(PAT_MARK in token and token.lower() in text for token in settings.tokens):
            yield f"{name} contains the access token: remove it from there"
