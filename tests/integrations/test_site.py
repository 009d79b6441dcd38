"""The site is built from the documents without a warning, and its search finds a page."""

import subprocess
from pathlib import Path

import pytest

from tests.integrations.pipeline import PROJECT
from tests.integrations.test_calendar import chromium
from tests.loaders.proof import python_of_proof

pytestmark = pytest.mark.integrations

SEARCH = """
import sys
from playwright.sync_api import sync_playwright

url, chromium = sys.argv[1:]
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    page = browser.new_page()
    page.goto(url)
    page.fill("input[name=q]", "lookback")
    page.press("input[name=q]", "Enter")
    page.wait_for_selector("#search-results li a")
    print(*page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)"))
    browser.close()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broken link, or a page in no list, fails the build."""
    folder = tmp_path_factory.mktemp("site")
    build = PROJECT / ".tools" / "site" / "bin" / "sphinx-build"
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-c", "docs/site"]
    done = subprocess.run(
        [build, *options, "-d", folder / "cache", ".", folder / "html"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


def test_every_page_is_on_the_site(site: Path) -> None:
    pages = [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")]

    built = [site / page.relative_to(PROJECT).with_suffix(".html") for page in pages]
    assert [page for page in built if not page.exists()] == []


def test_a_search_in_a_browser_finds_the_pages_about_a_word(site: Path) -> None:
    done = subprocess.run(
        [python_of_proof(), "-c", SEARCH, (site / "README.html").as_uri(), chromium()],
        capture_output=True,
        text=True,
        check=True,
    )

    assert "docs/delivery.html" in done.stdout
