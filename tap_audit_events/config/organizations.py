"""The setting ``organizations``: the organizations that a run reads, and the token for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from tap_audit_events.config import validators
from tap_audit_events.config.access_token import read_token_file
from tap_audit_events.errors.exceptions import sanitize

_VALIDATORS: Final[dict[str, Callable[[Any], str]]] = {
    "organization_id": validators.organization_id,
    "access_token": validators.access_token,
    "access_token_file": validators.access_token_file,
}


@dataclass(frozen=True, slots=True, repr=False)
class Organization:
    """One organization of a run, with its token, and the file of the token if there is one."""

    organization_id: str
    access_token: str
    access_token_file: str | None


def read_organizations(
    value: Any, *, token: str | None, token_file: str | None
) -> tuple[Organization, ...]:
    """Check the setting. A token file that several organizations name is read once, if readable.

    Args:
        value: the configured value.
        token: the token for organizations without a token of their own, None if it is unset.
        token_file: the file that contains this token, None if a setting contains it.

    Raises:
        ValueError: each argument names one thing to fix, and is meant to follow the setting's
            name. No argument contains a token.
    """
    if not isinstance(value, list) or not value:
        raise ValueError(' must be a list of objects, for example [{"organization_id": "…"}]')
    shared = None if token is None else (token, token_file)
    problems: list[str] = []
    organizations: dict[str, Organization] = {}
    read_file = cache(read_token_file)
    for position, item in enumerate(value):
        try:
            organization = _organization(item, shared, read_file)
        except ValueError as error:
            problems += [f"[{position}]{problem}" for problem in error.args]
            continue
        key = organization.organization_id.lower()
        if key in organizations:
            problems.append(f"[{position}].organization_id {key} is in the list twice")
        organizations[key] = organization
    if problems:
        raise ValueError(*problems)
    return tuple(organizations.values())


def _organization(
    item: Any, shared: tuple[str, str | None] | None, read_file: Callable[[str], str]
) -> Organization:
    if not isinstance(item, Mapping):
        raise ValueError(' must be an object, for example {"organization_id": "…"}')
    given = validators.set_values(item)
    problems = list(_problems_of_names(given))
    values: dict[str, str] = {}
    for name, validate in _VALIDATORS.items():
        try:
            if name in given:
                values[name] = validate(given[name])
        except ValueError as error:
            problems.append(f".{name} {error}")
    if problems:
        raise ValueError(*problems)
    return Organization(values["organization_id"], *_token(values, shared, read_file))


def _problems_of_names(given: Mapping[str, Any]) -> Iterator[str]:
    if "organization_id" not in given:
        yield f".organization_id is missing: set it to {validators.EXPECTED['organization_id']}"
    for name in sorted(map(str, given.keys() - _VALIDATORS.keys())):
        yield f" has an unknown name {sanitize(name, 60)}: an item has {', '.join(_VALIDATORS)}"
    if "access_token" in given and "access_token_file" in given:
        yield ".access_token and .access_token_file are both set: set only one of them"


def _token(
    values: Mapping[str, str],
    shared: tuple[str, str | None] | None,
    read_file: Callable[[str], str],
) -> tuple[str, str | None]:
    """The token of an organization, and the file that contains it, None if a setting does."""
    if "access_token" in values:
        return values["access_token"], None
    if path := values.get("access_token_file"):
        try:
            return read_file(path), path
        except ValueError as error:
            raise ValueError(f".access_token_file {error}") from None
    if shared is None:
        raise ValueError(
            " has no access_token or access_token_file, and neither is set for all organizations"
        )
    return shared
