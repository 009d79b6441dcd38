"""The settings of a run: checked, and read once into a frozen value."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tap_audit_events.config.schema import ENVIRONMENT_PREFIX, SETTINGS_SCHEMA
from tap_audit_events.config.token_file import check_token, others_may_read, read_token_file
from tap_audit_events.errors.exceptions import SettingsError, shown
from tap_audit_events.events.instants import Instant, parse_instant


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """The settings of one run, each checked (interface.md, sections 4.1, 5 and 8)."""

    base_url: str
    organization_id: str
    access_token: str
    access_token_file: str | None
    start_date: Instant | None
    end_date: Instant | None
    action_types: tuple[str, ...]
    page_size: int
    concurrency: int
    lookback_seconds: int
    request_timeout_seconds: float
    max_retries: int
    max_response_megabytes: int
    user_agent: str


def read_settings(config: Mapping[str, Any]) -> Settings:
    """Check a configuration.

    A setting that is null counts as not given.

    Raises:
        SettingsError: with one line for each setting to mend, none of which shows the token.
    """
    given = {name: value for name, value in config.items() if value is not None}
    values: dict[str, Any] = {}
    problems = []
    for name, read in _READERS.items():
        try:
            values[name] = read(given[name]) if name in given else _when_missing(name, given)
        except ValueError as error:
            problems.append(f"{name} {error}")
    if "access_token" in given and "access_token_file" in given:
        problems.append("access_token and access_token_file are both given: give one of them")
    elif path := values.get("access_token_file"):
        try:
            values["access_token"] = read_token_file(path)
        except ValueError as error:
            problems.append(f"access_token_file {error}")
    if not problems and _reversed(values["start_date"], values["end_date"]):
        problems.append("end_date is before start_date: it must be the same or later")
    if problems:
        raise SettingsError(problems)
    return Settings(**values)


def secrets_of(config: Mapping[str, Any]) -> list[str]:
    """What in a configuration may be a token, also in a wrong place: nothing of it is shown."""
    pairs = [pair for pair in config.items() if pair[0] != "access_token_file"]
    words = [word for pair in pairs for text in pair for word in str(text).split()]
    token = config.get("access_token")
    return [*(word for word in words if _MARK in word), str(token or "").strip()]


def token_warnings(settings: Settings) -> list[str]:
    """What of the token is no error but deserves a look: its kind, and who may read its file."""
    warnings, path = [], settings.access_token_file
    if _MARK not in settings.access_token:
        warnings.append(
            f"{'access_token_file' if path else 'access_token'} has no 'pat_' in it:"
            " a personal access token of the service has; check that it is one"
        )
    if path and others_may_read(Path(path).stat()):
        warnings.append(
            f"access_token_file {shown(path)} may be read by others than its owner: allow it to the"
            " user that runs the tap alone (chmod 600)"
        )
    return warnings


def settings_warnings(config: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """What is no error but deserves a look: names that no setting has."""
    warnings = []
    names = list(known)
    for unknown in sorted(config.keys() - set(names)):
        near = difflib.get_close_matches(unknown, names, n=1, cutoff=0.7)
        hint = f": did you mean {near[0]}?" if near else ", and none has a name like it"
        warnings.append(f"{shown(unknown, 60)} is no setting and is ignored{hint}")
    return warnings


_MARK: Final = "pat_"
"""A personal access token has it after its prefix (interface.md 5, rule 2)."""


def _when_missing(name: str, given: Mapping[str, Any]) -> Any:
    is_token = name == "access_token"
    if name in SETTINGS_SCHEMA["required"] or (is_token and "access_token_file" not in given):
        instead = ", or access_token_file to the path of a file that holds it" if is_token else ""
        raise ValueError(
            f"is missing: set it to the {_WHAT[name]}{instead}"
            f" (in the environment: {ENVIRONMENT_PREFIX}{name.upper()})"
        )
    if name == "action_types":
        return ()
    return SETTINGS_SCHEMA["properties"][name].get("default")


_WHAT: Final = {
    "base_url": "https address of the service, for example https://api.example.com",
    "organization_id": "UUID that the service's web application shows after /org/",
    "access_token": "personal access token with the scope organization:audit_events_read",
}


def _reversed(start: Instant | None, end: Instant | None) -> bool:
    return start is not None and end is not None and end < start


# Readers: each takes what was given, returns the setting's value, or raises ValueError with what is
# wrong and what would be right. None shows the token, nor an address, which may hold a password.


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a text: {what}")
    if not value.strip():
        raise ValueError(f"is empty: set it to {what}")
    return value


_NO_HOST: Final = "has no usable host or port: write https://host or https://host:8443"
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+(?:%[a-z0-9._~-]+)?")


def _base_url(value: Any) -> str:
    text = _text(value, f"the {_WHAT['base_url']}")
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise ValueError(
            "must be an address of printable ASCII without white space and backslashes"
        )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(_NO_HOST) from None
    if parts.scheme not in {"https", "http"} or not host or port == 0:
        raise ValueError(f"is no address: write the {_WHAT['base_url']}")
    if parts.username is not None or parts.query or parts.fragment or text[-1:] in "?#":
        raise ValueError("must not hold a user, a password, a query or a fragment")
    if not _HOST.fullmatch(host):  # others are escaped on the way to the service, so not the same
        raise ValueError(_NO_HOST)
    if parts.scheme == "http" and not _is_loopback(host):
        raise ValueError(
            "must be https, or the token could be read on its way; plain http is allowed to"
            " localhost and other loopback addresses only"
        )
    return text.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _organization_id(value: Any) -> str:
    text = _text(value, f"the {_WHAT['organization_id']}")
    if not _UUID.fullmatch(text):
        raise ValueError(
            "is no UUID: write it as in the address of the organization page after /org/, for"
            " example 0b5e7f0c-53a4-4d2e-9b5a-1f2d3c4b5a69"
        )
    return text


def _access_token(value: Any) -> str:
    text = _text(value, f"a {_WHAT['access_token']}")
    check_token(text)
    return text


def _access_token_file(value: Any) -> str:
    return _text(value, "the path of a file that holds the access token")


def _date(value: Any) -> Instant:
    text = _text(value, "an RFC 3339 date-time such as 2026-01-31T00:00:00Z")
    try:
        return parse_instant(text)
    except ValueError as error:
        raise ValueError(f"{error}; in a YAML file write it in quotes") from None


def _action_types(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError('must be a list of texts, for example ["workspace_create"]')
    if not all(item.strip() for item in value):
        raise ValueError("has an empty item: leave it out")
    if not all(item.isprintable() for item in value):
        raise ValueError("has a control character in an item: write the type's name as it is")
    if any("," in item for item in value):
        raise ValueError('has a comma in an item: write one type an item, ["one", "two"]')
    return tuple(dict.fromkeys(value))


def _integer(minimum: int, maximum: int | None = None) -> Callable[[Any], int]:
    bounds = f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"

    def read(value: Any) -> int:
        number = _number(value)
        if number is None or number != int(number):
            raise ValueError(f"must be a whole number, {bounds}")
        if number < minimum or (maximum is not None and number > maximum):
            raise ValueError(f"is {str(number)[:20]}: it must be {bounds}")
        return int(number)

    return read


def _seconds(maximum: int) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        number = _number(value)
        if number is None or number <= 0 or number > maximum:
            raise ValueError(f"must be a number of seconds above 0, at most {maximum}")
        return float(number)

    return read


def _number(value: Any) -> int | float | Decimal | None:
    """A finite number, None for anything else; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    number: int | float | Decimal = value
    return number if float("-inf") < number < float("inf") else None


def _user_agent(value: Any) -> str:
    text = _text(value, "a name, for example acme-pipeline/1.0")
    if not text.isascii() or not text.isprintable():
        raise ValueError("must be printable ASCII on one line")
    return text.strip()


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "base_url": _base_url,
    "organization_id": _organization_id,
    "access_token": _access_token,
    "access_token_file": _access_token_file,
    "start_date": _date,
    "end_date": _date,
    "action_types": _action_types,
    "page_size": _integer(1, 1000),
    "concurrency": _integer(1, 32),
    "lookback_seconds": _integer(0),
    "request_timeout_seconds": _seconds(3600),
    "max_retries": _integer(0),
    "max_response_megabytes": _integer(1, 2000),
    "user_agent": _user_agent,
}
