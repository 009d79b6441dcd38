"""The URL of a proxy is checked before any request, and never shown."""

from collections.abc import Mapping

import pytest
from requests.adapters import HTTPAdapter

from tap_audit_events.errors.exceptions import RefusedError
from tap_audit_events.errors.redaction import MASK, redact
from tap_audit_events.service.proxies import check_proxy

URL = "https://audit.example.com/v1/organizations"
PASSWORD = "pw5"
UNUSABLE = f"http://user:{PASSWORD}@"


def refusal(proxy: str, environment: Mapping[str, str]) -> str:
    """The details of the error about a proxy that cannot be used."""
    with pytest.raises(RefusedError) as raised:
        check_proxy(URL, {"https": proxy}, environment)
    assert raised.value.code == "AE-ADDRESS"
    assert PASSWORD not in str(raised.value)
    return raised.value.details


@pytest.mark.parametrize(
    "proxy",
    [
        "proxy.example.com:3128",
        "http://proxy.example.com:3128/path?query#fragment",
        "https://user:p%40ss%2Fword@proxy.example.com",
        "http://[::1]:3128",
        "socks5h://proxy.example.com:1080",
    ],
)
@pytest.mark.parametrize("scheme", ["https", "all"])
def test_the_usual_urls_of_proxies_are_accepted(proxy: str, scheme: str) -> None:
    """Scheme, port, user and path may be there or not."""
    check_proxy(URL, {scheme: proxy}, {"HTTPS_PROXY": proxy})


@pytest.mark.parametrize(
    "proxy",
    [
        UNUSABLE,
        f"http://user:{PASSWORD}@host:port",
        f"http://user:{PASSWORD} x@[::1",
        f"user:{PASSWORD}@host:80",
        f"ftp://user:{PASSWORD}@host",
        f"http://user:{PASSWORD}/x@host",
        f"http://user:{PASSWORD}#x@host",
        "http://:3128",
    ],
)
def test_a_url_that_cannot_be_that_of_a_proxy_is_refused(proxy: str) -> None:
    """The message names the variable and shows the form of a valid URL."""
    assert refusal(proxy, {"HTTPS_PROXY": proxy}) == (
        "the proxy that HTTPS_PROXY names must be a URL like http://host:port or"
        " http://user:password@host:port, with special characters percent-encoded"
    )


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", ""])
def test_the_variable_that_holds_the_proxy_is_named(name: str) -> None:
    """No other variable is named, even if its value is the same; the system may have its own."""
    environment = {**dict.fromkeys(("HTTP_PROXY", "NO_PROXY"), UNUSABLE), name: UNUSABLE}
    assert f"the proxy that {name or 'the system'} names must be" in refusal(UNUSABLE, environment)


@pytest.mark.parametrize(
    "proxies", [{}, {"http": UNUSABLE}, {"https": "http://host", "all": UNUSABLE}]
)
def test_a_proxy_that_the_url_does_not_go_through_does_not_matter(
    proxies: Mapping[str, str],
) -> None:
    check_proxy(URL, proxies, {"HTTPS_PROXY": UNUSABLE})


def test_the_password_of_a_proxy_is_masked() -> None:
    """A proxy may send it back, as it is in the URL, decoded, or as in the header."""
    proxy = "http://user:p%40ssw%C3%B6rd@proxy.example.com"
    check_proxy(URL, {"https": proxy}, {})
    header = HTTPAdapter().proxy_headers(proxy)["Proxy-Authorization"]
    shown = redact(f"407 p@sswörd, p%40ssw%C3%B6rd, {header}")
    assert shown == f"407 {MASK}, {MASK}, Basic {MASK}"
