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


def refusal(proxies: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The details of the error about a proxy that cannot be used."""
    with pytest.raises(RefusedError) as raised:
        check_proxy(URL, proxies, environment)
    assert raised.value.code == "AE-ADDRESS"
    assert PASSWORD not in str(raised.value)
    return raised.value.details


@pytest.mark.parametrize(
    "proxy",
    [
        "proxy.example.com",
        "proxy.example.com:3128",
        "http://proxy.example.com:3128",
        "https://proxy.example.com",
        "http://user:password@proxy.example.com:3128/",
        "http://user:p%40ss%2Fword@proxy.example.com:3128",
        "http://[::1]:3128",
        "http://proxy.example.com:3128/path?query#fragment",
        "socks4://proxy.example.com",
        "socks4a://proxy.example.com",
        "socks5://proxy.example.com",
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
        f"http://user:{PASSWORD}@host:99999",
        f"http://user:{PASSWORD}@host:port",
        f"http://user:{PASSWORD} x@[::1",
        f"user:{PASSWORD}@host:80",
        f"ftp://user:{PASSWORD}@host",
        f"ftp://{PASSWORD}",
        f"http://user:{PASSWORD}/x@host",
        f"http://user:{PASSWORD}?x@host",
        f"http://user:{PASSWORD}#x@host",
        f"http://user:80/{PASSWORD}@host",
        "http://",
        "http://:3128",
    ],
)
def test_a_url_that_cannot_be_that_of_a_proxy_is_refused(proxy: str) -> None:
    """The message names the variable and shows the form of a valid URL."""
    assert refusal({"https": proxy}, {"HTTPS_PROXY": proxy}) == (
        "the proxy that HTTPS_PROXY names must be a URL like http://host:port or"
        " http://user:password@host:port, with special characters percent-encoded"
    )


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "Https_Proxy", "ALL_PROXY"])
def test_the_variable_that_holds_the_proxy_is_named(name: str) -> None:
    """No other variable is named, even if its value is the same or its name is similar."""
    others = ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "PROXY", "HTTPS_PROXY_URL")
    environment = {**dict.fromkeys(others, UNUSABLE), "CORP_PROXY": "http://host", name: UNUSABLE}
    assert f"the proxy that {name} names must be" in refusal({"https": UNUSABLE}, environment)


@pytest.mark.parametrize("environment", [{}, {"HTTP_PROXY": UNUSABLE}, {"HTTPS_PROXY": "other"}])
def test_a_proxy_that_no_variable_holds_is_called_the_systems(
    environment: Mapping[str, str],
) -> None:
    """Windows and macOS have proxy settings of their own."""
    assert "the proxy that the system names must be" in refusal({"https": UNUSABLE}, environment)


@pytest.mark.parametrize(
    "proxies",
    [
        {},
        {"https": ""},
        {"http": UNUSABLE},
        {"https": "http://host", "all": UNUSABLE},
        {"https://other.example.com": UNUSABLE},
    ],
)
def test_a_proxy_that_the_url_does_not_go_through_does_not_matter(
    proxies: Mapping[str, str],
) -> None:
    """No proxy is needed, and a proxy for other URLs is not checked."""
    check_proxy(URL, proxies, {"HTTPS_PROXY": UNUSABLE})


def test_the_password_of_a_proxy_is_masked() -> None:
    """A proxy may send the password back, as it is in the URL or decoded."""
    check_proxy(URL, {"https": "http://user:p%40ssword@proxy.example.com"}, {})
    assert redact("407 p@ssword, p%40ssword") == f"407 {MASK}, {MASK}"


def test_the_header_with_the_password_of_a_proxy_is_masked() -> None:
    """Anybody can decode the header: its value is masked in the form in which requests sends it."""
    proxy = "http://user:p%40ssw%C3%B6rd@proxy.example.com"
    check_proxy(URL, {"https": proxy}, {})
    header = HTTPAdapter().proxy_headers(proxy)["Proxy-Authorization"]
    assert redact(f"407 {header}") == f"407 Basic {MASK}"
