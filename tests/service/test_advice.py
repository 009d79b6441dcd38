"""An error says where a refused value came from, and never advises what was already done."""

import datetime
import ssl
from dataclasses import replace
from email.utils import format_datetime
from pathlib import Path

import pytest
import trustme

from tap_audit_events.errors.catalogue import CATALOGUE
from tap_audit_events.errors.exceptions import RefusedError
from tap_audit_events.events.instants import Instant, instant_of, later
from tap_audit_events.events.window import Window, run_window
from tap_audit_events.service.advice import advice_on_certificate
from tap_audit_events.service.responses import status_error
from tests.builders import a_response
from tests.service.scripted import client_of, keeps_open, scripted_service
from tests.service.test_client import OWN_ERROR

NOW = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
FROM_STATE = "startTime comes from the state: it is the bookmark minus lookback_seconds. "
FROM_SETTING = "startTime comes from start_date or --start."
FROM_CLOCK = "endTime is the time of this machine's clock"


def a_range(start: str = "", end: str = "", bookmark: str = "") -> Window | None:
    """The range of a run at `NOW` whose lookback is 300 seconds."""
    start_date, end_date, newest = (
        Instant(f"{day}T00:00:00") if day else None for day in (start, end, bookmark)
    )
    now = instant_of(NOW)
    return run_window(
        start_date=start_date, end_date=end_date, bookmark=newest, lookback_seconds=300, now=now
    )


def refused(window: Window | None, **headers: str) -> str:
    """The line for status 400 of the first request of a window."""
    assert window is not None
    response = a_response(400, headers=headers)
    return str(status_error(response, OWN_ERROR, window=window, has_cursor=False))


@pytest.mark.parametrize(
    ("start_date", "bookmark", "origin"),
    [
        ("", "", ""),
        ("2026-01-01", "", FROM_SETTING),
        ("", "2025-10-01", FROM_STATE),
        ("2025-01-01", "2025-10-01", FROM_STATE),
        ("2025-11-01", "2025-10-01", FROM_SETTING),
    ],
)
def test_a_refused_start_says_where_it_comes_from(
    start_date: str, bookmark: str, origin: str
) -> None:
    """A service may keep events for 90 days only, while a bookmark is older."""
    line = refused(a_range(start_date, bookmark=bookmark))
    assert line.count("startTime") == bool(origin)
    assert origin in line
    assert line.endswith(f". {CATALOGUE['AE-400'].next_step}")
    assert ("set start_date to the oldest time that it accepts" in line) == (origin == FROM_STATE)


def test_a_refused_end_says_where_it_comes_from() -> None:
    """A clock that is ahead leads to an end that the service may refuse as being in the future."""
    before = format_datetime(NOW - datetime.timedelta(seconds=3600), usegmt=True)
    line = refused(a_range(), Date=before)
    assert f"{FROM_CLOCK}, which is 3,600 s ahead of the service's: correct it" in line
    for headers in ({}, {"Date": format_datetime(NOW, usegmt=True)}):
        assert f"{FROM_CLOCK}: check that the clock is right." in refused(a_range(), **headers)
    assert "endTime comes from end_date or --end." in refused(a_range(end="2026-01-01"))


def test_a_bound_that_the_tap_chose_has_no_origin() -> None:
    """The settings, the state and the clock do not explain it."""
    window = a_range("2026-01-01")
    assert window is not None
    middle = later(window.start or window.end, seconds=1000)
    assert FROM_CLOCK not in refused(replace(window, until=middle))
    assert FROM_SETTING in refused(replace(window, until=middle))
    assert FROM_SETTING in refused(window.starting_at(window.start))
    rest = refused(window.starting_at(middle))
    assert FROM_SETTING not in rest
    assert FROM_CLOCK in rest
    assert "endTime" not in refused(window.ending_at(middle))


# Certificates


@pytest.mark.parametrize(
    ("verify_code", "step"),
    [
        (10, "this machine's clock"),
        (62, "Check the host in base_url"),
        (89, "does not follow RFC 5280"),
    ],
)
def test_a_bundle_does_not_help_against_another_problem(verify_code: int, step: str) -> None:
    """An expired certificate, another host, and what only Python 3.13 and newer refuse."""
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_code = verify_code
    advice = advice_on_certificate(error, {"REQUESTS_CA_BUNDLE": "theirs.pem"})
    assert step in advice
    assert "REQUESTS_CA_BUNDLE" not in advice


@pytest.mark.parametrize(
    ("variables", "step"),
    [
        ({}, "name your own CA bundle in REQUESTS_CA_BUNDLE"),
        ({"SSL_CERT_FILE": "x"}, "SSL_CERT_FILE is not read: name your CA bundle in"),
        ({"REQUESTS_CA_BUNDLE": "theirs"}, "The CA bundle that REQUESTS_CA_BUNDLE names, '"),
        ({"CURL_CA_BUNDLE": "theirs"}, "The CA bundle that CURL_CA_BUNDLE names, '"),
        ({"REQUESTS_CA_BUNDLE": "nowhere"}, "Check the file that REQUESTS_CA_BUNDLE names, '"),
        ({"REQUESTS_CA_BUNDLE": "empty"}, "Check the file that REQUESTS_CA_BUNDLE names, '"),
    ],
)
def test_the_next_step_is_not_what_was_already_done(
    variables: dict[str, str], step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a bundle is named, it is the bundle that has to be changed."""
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "theirs"))
    (tmp_path / "empty").write_text("")
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, file in variables.items():
        monkeypatch.setenv(name, str(tmp_path / file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    with (
        scripted_service(keeps_open, tls=context) as service,
        pytest.raises(RefusedError, match="AE-CERTIFICATE") as raised,
    ):
        client_of(service).fetch()
    assert step in str(raised.value)
    assert str(raised.value).count("or name your own") == (not variables)
