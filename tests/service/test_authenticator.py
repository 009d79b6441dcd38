"""The token is sent to one origin only, and a rotated token is secret as soon as it is read."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from requests import PreparedRequest, Request, Response

from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.exceptions import RefusedError
from tap_audit_events.errors.redaction import MASK, redact
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tests.config.test_settings import GOOD
from tests.service.scripted import LoggedLines

BASE_URL = "https://api.example.com/prefix"


pytestmark = pytest.mark.usefixtures("no_secrets")


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("acme_pat_first")
    return path


@pytest.fixture
def logger() -> LoggedLines:
    return LoggedLines()


@pytest.fixture
def by_file(token_file: Path, logger: LoggedLines) -> AccessTokenAuthenticator:
    return an_authenticator(token_file=str(token_file), logger=logger)


def an_authenticator(
    *,
    base_url: str = BASE_URL,
    token_file: str | None = None,
    logger: LoggedLines | None = None,
) -> AccessTokenAuthenticator:
    """An authenticator with settings from another process: its token is not secret yet."""
    settings = replace(
        read_settings(GOOD | {"access_token": "placeholder"}),
        access_token="acme_pat_first",
        access_token_file=token_file,
        base_url=base_url,
    )
    return AccessTokenAuthenticator(settings, logger or LoggedLines())


def a_request(url: str = f"{BASE_URL}/v1/x") -> PreparedRequest:
    return Request("GET", url).prepare()


def refused(authenticator: AccessTokenAuthenticator) -> Response:
    """A response to a request with the current token."""
    response = Response()
    response.request = authenticator(a_request())
    return response


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        (BASE_URL, f"{BASE_URL}/v1/x"),
        (BASE_URL, "https://api.example.com/elsewhere"),
        (BASE_URL, "https://api.example.com:443/x"),
        (BASE_URL, "https://API.example.com/x"),
        ("https://api.example.com:443", "https://api.example.com/x"),
        ("http://localhost", "http://localhost:80/x"),
        ("http://localhost:80", "http://localhost/x"),
        ("http://localhost:8080", "http://localhost:8080/x"),
    ],
)
def test_the_origin_of_the_base_url_receives_the_token(base_url: str, url: str) -> None:
    """An origin is a scheme, a host and a port, however they are written."""
    authenticator = an_authenticator(base_url=base_url)
    request = authenticator(a_request(url))
    assert request.headers["Authorization"] == "Bearer acme_pat_first"


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/prefix/v1/x",
        "http://api.example.com:443/prefix/v1/x",
        "https://api.example.com:8443/prefix/v1/x",
        "https://api.example.com:80/prefix/v1/x",
        "https://api.example.com.evil.example/prefix/v1/x",
        "https://evil.example/https://api.example.com/prefix/",
        "https://example.com/prefix/v1/x",
        "https://api.example.com@evil.example/prefix/",
    ],
)
def test_no_other_origin_receives_the_token(url: str, by_file: AccessTokenAuthenticator) -> None:
    """The request is refused before it is sent."""
    request = a_request(url)
    with pytest.raises(RefusedError, match=r"AE-.* \(the request is for another scheme or host\)"):
        by_file(request)
    assert "Authorization" not in request.headers


def test_a_rotated_token_is_read_once_for_requests_that_were_refused_together(
    token_file: Path, by_file: AccessTokenAuthenticator, logger: LoggedLines
) -> None:
    """It is masked as soon as it is read; the old one was masked before the first request."""
    assert redact("acme_pat_first") == MASK
    responses = [refused(by_file) for _ in range(3)]
    token_file.write_text("acme_pat_second\n")
    assert by_file.has_new_token(responses[0])
    assert redact("acme_pat_second") == MASK
    assert refused(by_file).request.headers["Authorization"] == "Bearer acme_pat_second"
    token_file.unlink()
    assert [by_file.has_new_token(response) for response in responses] == [True] * 3
    assert not by_file.has_new_token(refused(by_file))
    assert len(logger.lines) == 2  # the new token, and that the file is gone
