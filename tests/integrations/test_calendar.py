"""The calendar of `audit-events report` in a real browser."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest

from tests.cli.command import Done
from tests.loaders.proof import audit_events, python_of_proof

pytestmark = pytest.mark.integrations

TABLES = """
CREATE TABLE audit_events (id VARCHAR, occurredat TIMESTAMP);
INSERT INTO audit_events SELECT i, TIMESTAMP '2025-02-01 12:00:00' FROM range(100) AS t (i);
INSERT INTO audit_events VALUES ('one', '2025-03-01 00:00:00'), ('before', '2024-12-31 23:59:59');
CREATE TABLE audit_events_coverage
    (organization_id VARCHAR, covered_from TIMESTAMP, covered_until TIMESTAMP);
INSERT INTO audit_events_coverage VALUES
    ('o', '0001-01-01', '2025-05-03'), ('o', '2025-05-04 12:00:00', '2026-01-01');
"""

DAYS = ["2025-01-01", "2025-02-01", "2025-03-01", "2025-05-04"]
LOOK = """
import json, sys
from playwright.sync_api import sync_playwright

url, chromium, folder, *days = sys.argv[1:]
BOX = "id => { const b = document.getElementById(id).getBoundingClientRect(); return b.width }"
HALF = "day-2025-05-04", "gap-2025-05-04-0.0000"
TITLE = "each => each.querySelector('title').textContent"
FILL = "id => getComputedStyle(document.getElementById(id).querySelector('path')).fill"
found = []
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme, viewport={"width": 1160, "height": 900})
        page.goto(url)
        page.screenshot(path=f"{folder}/{scheme}.png")
        found.append({
            "fills": [page.evaluate(FILL, f"day-{day}") for day in days],
            "gaps": page.evaluate("[...document.querySelectorAll('[id^=gap-]')].map(e => e.id)"),
            "widths": [page.evaluate(BOX, each) for each in HALF],
            "text": page.inner_text("body"),
            "name": page.get_by_role("img").first.evaluate(TITLE),
            "background": page.evaluate("getComputedStyle(document.body).backgroundColor"),
            "ink": page.evaluate("getComputedStyle(document.querySelector('svg text')).fill"),
            "overflows": page.evaluate("document.body.scrollWidth > innerWidth"),
        })
    browser.close()
print(json.dumps(found))
"""
"""Runs in .tools/proof: prints how a browser shows a page, in a light and in a dark scheme."""


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no chromium: on Debian and Ubuntu, apt install chromium")
    return found


def luminance(color: str) -> float:
    """Return the luminance of a color such as rgb(1, 2, 3), from 0 to 1."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast that WCAG defines, from 1 to 21."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the tables."""
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as connection:
        connection.execute(TABLES)
    return tmp_path


def report(folder: Path, to: str, year: str = "2025") -> Done:
    return audit_events(
        folder, {}, "report", "--from", "warehouse.duckdb", "--year", year, "--to", to
    )


def test_a_browser_shows_the_calendar(folder: Path) -> None:
    """The color of a day shows its events, a gap covers its part of a day, and text is readable."""
    done = report(folder, "calendar.html").raise_for_exit_code()
    assert done.log == "Written to calendar.html: 101 events in 2025, 1 gap\n"

    url = (folder / "calendar.html").as_uri()
    command: list[str | Path] = [python_of_proof(), "-c", LOOK, url, chromium(), folder, *DAYS]
    looked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert looked.returncode == 0, looked.stderr

    light, dark = json.loads(looked.stdout)
    for seen in (light, dark):
        none, many, few, also_none = seen["fills"]
        assert len({none, many, few}) == 3
        assert none == also_none
        assert seen["gaps"] == ["gap-2025-05-03-0.0000", "gap-2025-05-04-0.0000"]
        day, half = seen["widths"]
        assert half == pytest.approx(day / 2, rel=0.1)
        assert contrast(seen["ink"], seen["background"]) > 7
        assert seen["name"] == "Audit events in 2025"
        assert not seen["overflows"]
        for text in ("not covered: 1 gap, 36.0 hours", "2025-05-03 00:00:00", "2025-05-04 12:00:00",
                     "no events", "2025-02\t100"):  # fmt: skip
            assert text in seen["text"], seen["text"]
    assert luminance(light["background"]) > 0.9
    assert luminance(dark["background"]) < 0.1
    assert all((folder / f"{scheme}.png").stat().st_size > 10_000 for scheme in ("light", "dark"))


def test_the_picture_has_a_title_and_a_description(folder: Path) -> None:
    """They state the events and the missing time, also for a year without events."""
    report(folder, "calendar.svg").raise_for_exit_code()
    report(folder, "empty.svg", year="1999").raise_for_exit_code()

    svg = ElementTree.parse(folder / "calendar.svg").getroot()  # noqa: S314 - our own file
    names = [svg.find(f"{{http://www.w3.org/2000/svg}}{name}") for name in ("title", "desc")]
    assert svg.get("role") == "img"
    assert [each.text for each in names if each is not None] == [
        "Audit events in 2025",
        "101 events; not covered: 1 gap, 36.0 hours until 2026-01-01 00:00 UTC",
    ]
    assert "0 events; no time is missing" in (folder / "empty.svg").read_text()


def test_without_coverage_records_the_number_of_organizations_is_not_shown(folder: Path) -> None:
    """The number is unknown, so the events are not attributed to 0 organizations."""
    with duckdb.connect(str(folder / "warehouse.duckdb")) as connection:
        connection.execute("DELETE FROM audit_events_coverage")
    report(folder, "calendar.svg").raise_for_exit_code()
    assert "101 events; not covered: 1 gap, 8,760.0 hours" in (folder / "calendar.svg").read_text()


def test_an_error_of_the_report_is_one_line(folder: Path) -> None:
    assert report(folder, "calendar.png").error.startswith("AE-EXPORT: --to 'calendar.png' has no")
    (folder / "warehouse.duckdb").unlink()
    assert report(folder, "calendar.svg").error.startswith("AE-LOADED: ")
