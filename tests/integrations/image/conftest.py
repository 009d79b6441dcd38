"""One image for each test process, built from a copy of the project with secrets in it."""

import os
import shutil
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import certifi
import pytest

from tests.integrations.image.built_image import (
    Buildah,
    BuiltImage,
    copy_sources,
    missing,
    mounted,
)

SECRET = "acme_pat_that_no_image_may_contain"
PLACES = [".env", "config.json", "image/token", "requirements/token.txt", "secrets/access_token"]
"""Files that people leave next to a Containerfile."""


@pytest.fixture(scope="session")
def buildah() -> Iterator[Buildah]:
    """buildah, with a base for images."""
    if reason := missing():
        pytest.skip(reason)
    # It is not below pytest's own folder, which only this user may enter.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    buildah = Buildah(folder)
    buildah.create_base()
    yield buildah
    buildah("rmi", "--all", "--force")
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, with a token in files that do not belong to it."""
    folder = tmp_path_factory.mktemp("sources")
    copy_sources(folder)
    for place in PLACES:
        path = folder / place
        path.parent.mkdir(exist_ok=True)
        path.write_text(SECRET)
    return folder


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificates that pip trusts here, and a secret text that OpenSSL ignores."""
    system = ssl.get_default_verify_paths().cafile
    trusted = os.environ.get("PIP_CERT") or system or certifi.where()
    path = tmp_path_factory.mktemp("certificates") / "certificates.pem"
    path.write_text(f"{SECRET}\n{Path(trusted).read_text()}")
    return path


@pytest.fixture(scope="session")
def image(buildah: Buildah, sources: Path, certificates: Path) -> Iterator[BuiltImage]:
    """The image that `make image` builds."""
    built = buildah.make_image(sources, PIP_CERT=str(certificates))
    assert built.returncode == 0, built.stdout + built.stderr
    with ExitStack() as stack:
        yield stack.enter_context(mounted(buildah))
