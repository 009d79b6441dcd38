"""Builds the image by `make image` with buildah, on a Debian of the system's packages; runs it.

`buildah run` runs a command as the image's user, with the machine's network. It cannot make the
root file system read-only; `read_only_command` can. Its process is the program itself, which
therefore gets the test's signals and gives its exit code.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.integrations.pipeline import PROJECT

DEBIAN: Final = PROJECT / ".tools" / "debian-root" / "root.tar"
BASE: Final = "localhost/debian-python"
NAME: Final = "localhost/tap-audit-events"
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SOURCES: Final = [
    ".containerignore", "Containerfile", "LICENSE", "Makefile", "README.md", "image",
    "pyproject.toml", "requirements", "tap_audit_events",
]  # fmt: skip
READ_ONLY: Final = """
set -eu
root=$1 data=$2 folder=$3
shift 3
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --bind "$data" "$root$folder"
mount -o remount,bind,ro "$root"
exec chroot "$@"
"""
"""Runs chroot with further arguments; in its root, only the data folder can be written."""


def missing() -> str:
    """Return the reason why the image cannot be built here, or an empty text."""
    programs = [name for name in ("buildah", "debootstrap", "make") if not shutil.which(name)]
    if programs:
        return f"needs {' and '.join(programs)}"
    if os.geteuid() != 0:
        return "needs root, to create a Debian and to mount the image"
    return "" if DEBIAN.exists() else "needs a Debian: make .tools/debian-root/.installed"


@dataclass(frozen=True)
class Buildah:
    """buildah with separate storage; its containers need no cgroup."""

    storage: Path

    @property
    def command(self) -> list[str]:
        return ["buildah", "--root", f"{self.storage}/root", "--runroot", f"{self.storage}/run"]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "BUILDAH_ISOLATION": "chroot"}

    def __call__(self, *arguments: str | Path) -> str:
        """Run a command of buildah, and return what it prints."""
        done = subprocess.run(
            [*self.command, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def create_base(self) -> None:
        """Create a base image of the Debian, with the PATH that images of Python have."""
        container = self("from", "scratch")
        self("add", "--quiet", container, DEBIAN, "/")
        self("config", "--env", f"PATH={PATH}", container)
        self("commit", "--quiet", "--rm", "--disable-compression", container, BASE)

    def make_image(
        self, sources: Path, *arguments: str, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run `make image` in a copy of the project; layers are cached."""
        given = ["--layers", "--network", "host", "--build-arg", f"BASE={BASE}", *arguments]
        return subprocess.run(
            ["make", "image", f"IMAGE_ARGS={' '.join(given)}"],
            cwd=sources,
            env=self.environment | {"BUILDER": " ".join(self.command), "IMAGE": NAME} | environment,
            capture_output=True,
            text=True,
            check=False,
        )


@dataclass(frozen=True)
class BuiltImage:
    """The image and a container of it, whose file system is mounted."""

    buildah: Buildah
    description: Mapping[str, Any]
    container: str
    root: Path

    @property
    def config(self) -> dict[str, Any]:
        """The user, environment, labels, folder and entry point."""
        config: dict[str, Any] = self.description["OCIv1"]["config"]
        return config

    def buildah_command(self, data: Path, *arguments: str) -> list[str]:
        """Return the command that runs the entry point with buildah; `data` is the data folder."""
        options = ["--network", "host", "--volume", f"{data}:{self.config['WorkingDir']}"]
        command = [*self.config["Entrypoint"], *arguments]
        return [*self.buildah.command, "run", *options, self.container, "--", *command]

    def read_only_command(self, data: Path, *arguments: str) -> list[str]:
        """Return the command that runs the entry point in a read-only root, as its own process."""
        folder = self.config["WorkingDir"]
        mounts = ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", self.root, data, folder]
        chroot = [f"--userspec={self.config['User']}", "--groups=", self.root]
        program = [
            "env",
            "-i",
            f"--chdir={folder}",
            *self.config["Env"],
            *self.config["Entrypoint"],
        ]
        return [str(each) for each in (*mounts, *chroot, *program, *arguments)]

    def run(self, command: list[str]) -> "subprocess.CompletedProcess[bytes]":
        """Run a command of this image to its end."""
        return subprocess.run(
            command, env=self.buildah.environment, capture_output=True, check=False, timeout=120
        )


def copy_sources(folder: Path) -> None:
    """Copy the files of the project that the build needs."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in SOURCES:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy2(source, folder / name)


@contextmanager
def mounted(buildah: Buildah) -> Iterator[BuiltImage]:
    """Mount a container of the built image."""
    description = json.loads(buildah("inspect", "--type", "image", NAME))
    container = buildah("from", NAME)
    try:
        yield BuiltImage(buildah, description, container, Path(buildah("mount", container)))
    finally:
        buildah("umount", container)
        buildah("rm", container)
