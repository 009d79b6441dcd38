"""The warnings at the start of a run are exact to the instant."""

import pytest

from tap_audit_events.config.settings import read_settings
from tap_audit_events.events.instants import Instant
from tap_audit_events.extraction.watermark import Watermark
from tap_audit_events.run.start_warnings import start_warnings
from tests.builders import ORGANIZATION_ID

SETTINGS = read_settings(
    {
        "base_url": "https://api.example.com",
        "organization_id": ORGANIZATION_ID,
        "access_token": "x_pat_y",
    }
)
NOW = Instant("2026-01-01T00:00:01")


@pytest.mark.parametrize(
    ("bookmark", "is_ahead"),
    [
        ("2026-01-01T00:00:00.9", False),
        ("2026-01-01T00:00:01", False),
        ("2026-01-01T00:00:01.1", True),
    ],
)
def test_a_bookmark_after_now_lies_in_the_future(bookmark: str, is_ahead: bool) -> None:
    """A bookmark of this very instant does not lie in the future."""
    warnings = start_warnings(Watermark(Instant(bookmark)), SETTINGS, NOW)
    assert any("lies in the future" in each for each in warnings) == is_ahead


def test_a_run_without_a_bookmark_has_no_warnings() -> None:
    """Such a run leaves no events out."""
    assert list(start_warnings(Watermark(), SETTINGS, NOW)) == []
