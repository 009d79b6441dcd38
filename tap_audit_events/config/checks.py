"""Checks that bounds and types cannot express: each returns the value, or raises `ValueError`.

The error's message is meant to follow the setting's name. It never contains the access token, or a
URL, which may contain a password.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

from tap_audit_events.events.instants import Instant, first_instant, last_instant

_NO_HOST: Final = "has no usable host or port: write it as in https://api.example.com:8443"
_HOST_AND_PORT = re.compile(
    r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._~-]+)?\])(?::[0-9]*)?"
)
"""Other characters would be escaped in the request, which would then go to another host."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def base_url(text: str) -> str:
    """The base URL, without a slash at its end."""
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise ValueError("must be a URL of printable ASCII without white space and backslashes")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(_NO_HOST) from None
    if parts.scheme not in {"https", "http"} or not host or port == 0:
        raise ValueError("is not an https URL with a host, for example https://api.example.com")
    if parts.username is not None or parts.query or parts.fragment or text[-1:] in "?#":
        raise ValueError("must not contain a user, a password, a query or a fragment")
    if not _HOST_AND_PORT.fullmatch(parts.netloc):
        raise ValueError(_NO_HOST)
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError(
            "must be https: over plain http the token could be read on its way; plain http is"
            " allowed only to localhost and other loopback hosts"
        )
    return f"{parts.scheme}{text[len(parts.scheme) :]}".rstrip("/")  # the scheme in lower case


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def organization_id(text: str) -> str:
    """The organization's UUID."""
    if not _UUID.fullmatch(_trimmed(text)):
        raise ValueError(
            "is not a UUID: copy it from the URL of the organization page, after /org/, for"
            " example 0b5e7f0c-53a4-4d2e-9b5a-1f2d3c4b5a69"
        )
    return text


def start_date(text: str) -> Instant:
    """The first instant of an RFC 3339 date-time or of a day in UTC."""
    return first_instant(_trimmed(text))


def end_date(text: str) -> Instant:
    """The last instant of an RFC 3339 date-time or of a day in UTC."""
    return last_instant(_trimmed(text))


def action_types(items: tuple[str, ...]) -> tuple[str, ...]:
    """A list of action types, each once."""
    if not all(item.strip() for item in items):
        raise ValueError("has an empty item: remove it")
    if any(item != item.strip() for item in items):
        raise ValueError("has white space at the start or end of an item: remove it")
    if not all(item.isprintable() for item in items):
        raise ValueError("has a control character in an item: remove the character")
    if any("," in item for item in items):
        raise ValueError('has a comma in an item: write one type per item, ["one", "two"]')
    return tuple(dict.fromkeys(items))


def quarantine_file(text: str) -> str:
    """The path of a file."""
    if "://" in text or not text.isprintable():
        raise ValueError("must be the path of a file, without control characters, not a URL")
    return text


def user_agent(text: str) -> str:
    """The value of a User-Agent header."""
    if not text.isascii() or not text.isprintable():
        raise ValueError("must be printable ASCII on one line")
    return text.strip()


def _trimmed(text: str) -> str:
    if text != text.strip():
        raise ValueError("begins or ends with white space, such as a line break: remove it")
    return text
