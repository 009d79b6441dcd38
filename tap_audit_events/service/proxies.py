"""Checks the proxy that the environment names for a URL, before the first request."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from requests.utils import select_proxy
from urllib3.util import parse_url

from tap_audit_events.errors.exceptions import service_error
from tap_audit_events.errors.redaction import register_possible_secret

_NAMES: Final = frozenset({"https_proxy", "all_proxy"})
_SCHEMES: Final = frozenset({None, "http", "https", "socks4", "socks4a", "socks5", "socks5h"})


def check_proxy(url: str, proxies: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Check the proxy through which an https URL would be requested, if there is one.

    `RefusedError` if it cannot be used. The message names the variable and never its value, which
    may contain a password.
    """
    proxy = select_proxy(url, dict(proxies))
    if not proxy:
        return
    if _is_usable(proxy):
        _register_password(proxy)
        return
    names = (
        name for name, value in environment.items() if value == proxy and name.lower() in _NAMES
    )
    source = next(names, "the system")
    raise service_error(
        "AE-ADDRESS",
        details=f"the proxy that {source} names must be a URL like http://host:port or"
        " http://user:password@host:port, with special characters percent-encoded",
    )


def _is_usable(proxy: str) -> bool:
    try:
        parsed = parse_url(proxy)
    except ValueError:
        return False
    host = parsed.host or ""  # urllib3 before 2.8 allows a space in it
    rest = f"{parsed.path}{parsed.query}{parsed.fragment}"  # an @ in it: the password has / ? or #
    return parsed.scheme in _SCHEMES and len(host.split()) == 1 and "@" not in rest


def _register_password(proxy: str) -> None:
    """Mask the password in logs: a proxy may send it back, in plain or encoded as in the header.

    Without a password, the name of the user is masked: some services expect a key there.
    """
    auth = parse_url(proxy).auth or ""
    user, _, password = auth.partition(":")
    password = password or user
    basic = b64encode(unquote(auth).encode("latin-1", "replace")).decode()
    register_possible_secret(password, unquote(password), basic)
