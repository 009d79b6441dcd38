"""The site is built from the documents without a warning, and has every page."""

import subprocess
from pathlib import Path

import pytest

from tests.integrations.pipeline import PROJECT

pytestmark = pytest.mark.integrations


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
