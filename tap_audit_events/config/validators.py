"""Validators: each returns the value of one setting, or raises ValueError.

The error's message says what is wrong and what is expected, and is meant to follow the setting's
name. It never contains the access token, or a URL, which may contain a password.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

from tap_audit_events.config.access_token import check_token
from tap_audit_events.events.instants import Instant, first_instant, instant_of, last_instant

EXPECTED: Final = {
    "base_url": "the https URL of the service, for example https://api.example.com",
    "organization_id": "the UUID that the service's web application shows after /org/",
    "access_token": "a personal access token with the scope organization:audit_events_read",
}
"""What to set each required setting to."""

_NO_HOST: Final = "has no usable host or port: write https://host or https://host:8443"
_HOST_AND_PORT = re.compile(
    r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._~-]+)?\])(?::[0-9]*)?"
)
"""Other characters would be escaped in the request, which would then go to another host."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def set_values(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are set, that is, neither null nor an empty text.

    Platforms send both for a field of a form that was left empty, and Meltano sends an empty text
    for an empty variable.
    """
    return {name: value for name, value in config.items() if value is not None and value != ""}


def base_url(value: Any) -> str:
    """The base URL, without a slash at its end."""
    text = _string(value, EXPECTED["base_url"])
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise ValueError("must be a URL of printable ASCII without white space and backslashes")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(_NO_HOST) from None
    if parts.scheme not in {"https", "http"} or not host or port == 0:
        raise ValueError(f"is not a usable URL: set it to {EXPECTED['base_url']}")
    if parts.username is not None or parts.query or parts.fragment or text[-1:] in "?#":
        raise ValueError("must not contain a user, a password, a query or a fragment")
    if not _HOST_AND_PORT.fullmatch(parts.netloc):
        raise ValueError(_NO_HOST)
    if parts.scheme == "http" and not _is_loopback(host):
        raise ValueError(
            "must be https: over plain http the token could be read on its way; plain http is"
            " allowed only to localhost and other loopback hosts"
        )
    return f"{parts.scheme}{text[len(parts.scheme) :]}".rstrip("/")  # the scheme in lower case


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def organization_id(value: Any) -> str:
    """The organization's UUID."""
    text = _trimmed(value, EXPECTED["organization_id"])
    if not _UUID.fullmatch(text):
        raise ValueError(
            "is not a UUID: copy it from the URL of the organization page, after /org/, for"
            " example 0b5e7f0c-53a4-4d2e-9b5a-1f2d3c4b5a69"
        )
    return text


def access_token(value: Any) -> str:
    """A token that can be sent in a header."""
    text = _string(value, EXPECTED["access_token"])
    check_token(text)
    return text


def access_token_file(value: Any) -> str:
    """The path of a file, which is not read here."""
    return _string(value, "the path of a file that contains the access token")


def start_date(value: Any) -> Instant:
    """The first instant of an RFC 3339 date-time, an aware ``datetime`` or a day in UTC."""
    return _instant(value, first_instant)


def end_date(value: Any) -> Instant:
    """The last instant of an RFC 3339 date-time, an aware ``datetime`` or a day in UTC."""
    return _instant(value, last_instant)


def is_changed_by_yaml(value: Any) -> bool:
    """Whether a text may be a time that a YAML parser has read and written in another form."""
    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _instant(value: Any, parse: Callable[[str], Instant]) -> Instant:
    if isinstance(value, datetime):
        return _instant_of_datetime(value)
    if isinstance(value, date):
        return parse(value.isoformat())
    return parse(_trimmed(value, "a time such as 2026-01-31T00:00:00Z, or a date"))


def _instant_of_datetime(value: datetime) -> Instant:
    if value.utcoffset() is None:
        raise ValueError(
            "has no time zone: use an aware datetime, such as datetime(2026, 1, 1, tzinfo=UTC)"
        )
    try:
        return instant_of(value)
    except OverflowError:
        raise ValueError("is outside of the years 1 to 9999 in UTC") from None


def action_types(value: Any) -> tuple[str, ...]:
    """A list of action types, each once."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError('must be a list of strings, for example ["workspace_create"]')
    if not all(item.strip() for item in value):
        raise ValueError("has an empty item: remove it")
    if any(item != item.strip() for item in value):
        raise ValueError("has white space at the start or end of an item: remove it")
    if not all(item.isprintable() for item in value):
        raise ValueError("has a control character in an item: remove the character")
    if any("," in item for item in value):
        raise ValueError('has a comma in an item: write one type per item, ["one", "two"]')
    return tuple(dict.fromkeys(value))


def integer(minimum: int, maximum: int | None = None) -> Callable[[Any], int]:
    """A validator of whole numbers within bounds."""
    bounds = f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"

    def validate(value: Any) -> int:
        number = _number(value)
        if number is None or number != int(number):
            raise ValueError(f"must be a whole number, {bounds}")
        if number < minimum or (maximum is not None and number > maximum):
            raise ValueError(f"is {str(number)[:20]}: it must be {bounds}")
        return int(number)

    return validate


def seconds(maximum: int) -> Callable[[Any], float]:
    """A validator of positive numbers of seconds."""

    def validate(value: Any) -> float:
        number = _number(value)
        if number is None or number <= 0 or number > maximum:
            raise ValueError(f"must be a number of seconds above 0, at most {maximum}")
        return float(number)

    return validate


def one_of(*allowed: str) -> Callable[[Any], str]:
    """A validator that accepts only these texts."""

    def validate(value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"must be {' or '.join(allowed)}")
        return str(value)

    return validate


def boolean(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def user_agent(value: Any) -> str:
    """The value of a User-Agent header."""
    text = _string(value, "a name, for example acme-pipeline/1.0")
    if not text.isascii() or not text.isprintable():
        raise ValueError("must be printable ASCII on one line")
    return text.strip()


def _string(value: Any, expected: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a string: {expected}")
    if not value.strip():
        raise ValueError(f"is empty: set it to {expected}")
    return value


def _trimmed(value: Any, expected: str) -> str:
    text = _string(value, expected)
    if text != text.strip():
        raise ValueError("begins or ends with white space, such as a line break: remove it")
    return text


def _number(value: Any) -> int | float | Decimal | None:
    """A finite number; None for anything else, including true and false."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    number: int | float | Decimal = value
    return number if Decimal(number).is_finite() else None
