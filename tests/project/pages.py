"""The files and commands that a page of the documents shows."""

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.integrations.pipeline import PROJECT


@dataclass(frozen=True)
class Section:
    """A part of a page, from a heading to the next of the same level."""

    text: str

    @property
    def commands(self) -> list[str]:
        """Every command in a console block, in order."""
        consoles = re.findall(r"```console\n(.*?)```", self.text, re.DOTALL)
        return [line[2:] for text in consoles for line in text.splitlines() if line[:2] == "$ "]

    @property
    def files(self) -> dict[str, str]:
        """Every file of the text, by the name in the comment before it."""
        pattern = r"<!-- file: (\S+) -->\n```\w+\n(.*?)```"
        return dict(re.findall(pattern, self.text, re.DOTALL))

    def write_files(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).write_text(text)


def sections(page: str) -> dict[str, Section]:
    """Return the sections of a page in docs/ by their headings."""
    text = (PROJECT / "docs" / page).read_text()
    _, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {title: Section(body) for title, body in zip(parts[::2], parts[1::2], strict=True)}


def write_constraints(path: Path, *names: str) -> Path:
    """Write the pins of `requirements/` without hashes, which a built package has not.

    A pin of a later file replaces one of an earlier file.
    """
    pins: dict[str, str] = {}
    for name in names:
        text = (PROJECT / "requirements" / f"{name}.txt").read_text()
        pins |= dict(re.findall(r"^([^\s#=]+)==([^\\\n]+)", text, re.MULTILINE))
    path.write_text("".join(f"{name}=={pin}\n" for name, pin in pins.items()))
    return path


def unpacked_sdist(folder: Path) -> Path:
    """Build the sdist, which holds what a user clones, and return the folder of its files."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    (archive,) = folder.glob("*.tar.gz")
    subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
    return folder / archive.name.removesuffix(".tar.gz")


def shell(
    command: str, folder: Path, environment: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run a command of a page as a reader would."""
    return subprocess.run(
        ["bash", "-uo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
