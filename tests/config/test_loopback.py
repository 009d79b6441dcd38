"""Plain http is allowed to this machine only: on a network, others could read the token."""

import pytest

from tap_audit_events.config.checks import base_url


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LocalHost", "127.0.0.1", "127.0.0.2", "127.255.255.255", "[::1]",
        "[0:0:0:0:0:0:0:1]",
    ],
)  # fmt: skip
@pytest.mark.parametrize("rest", ["", ":8080", "/prefix", ":8080/prefix/"])
def test_loopback_hosts_may_use_plain_http(host: str, rest: str) -> None:
    """The whole name or number counts; port and path do not matter."""
    assert base_url(f"http://{host}{rest}") == f"http://{host}{rest}".rstrip("/")


@pytest.mark.parametrize("scheme", ["HTTP", "Http"])
def test_the_scheme_is_in_lower_case(scheme: str) -> None:
    """Code that compares a scheme in capitals would not recognize it, and would use a proxy."""
    assert base_url(f"{scheme}://LocalHost/A") == "http://LocalHost/A"
    assert base_url(f"{scheme}S://example.com") == "https://example.com"


@pytest.mark.parametrize(
    "host",
    [
        # names and numbers that resemble those of this machine
        "localhost.example.com", "localhost.", "localhosts", "a.localhost", "localhost4",
        "127.0.0.1.example.com", "127.0.0.1.", "127-0-0-1.example.com", "example.com",
        "0x7f.1", "0x7f000001", "127.1", "2130706433", "0177.0.0.1", "127.0.0.01", "127.0.0.256",
        "0", "10.0.0.1", "128.0.0.1", "[::]", "[::2]", "[::ffff:10.0.0.1]", "[fe80::1%25lo]",
        # another host after a text that looks like a loopback host
        "[::1].example.com", "example.com[::1]", "127.0.0.1@evil.example",
        "localhost:1@evil.example", "evil.example#@localhost", "evil.example?@localhost",
        "evil.example\\@localhost", "evil.example/@localhost", "localhost%2eevil.example",
        "localhost,evil.example", "localhost .evil.example", "localhost\t.evil.example",
        "loc\u0430lhost", "\uff4cocalhost", "127\u30020\u30020\u30021",
    ],
)  # fmt: skip
def test_hosts_that_resemble_loopback_may_not_use_plain_http(host: str) -> None:
    """They are refused however a library would read them."""
    with pytest.raises(ValueError, match=r"^(must|has|is not)\b"):
        base_url(f"http://{host}")
    with pytest.raises(ValueError, match=r"^(must|has|is not)\b"):
        base_url(f"http://{host}:8080/v1")
