"""Commands of `docs/loaders.md` reproduce the defects of loaders, with the output on the page."""

import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.loaders.loader import environment_of
from tests.loaders.pipeline import PROJECT

PAGE = (PROJECT / "docs" / "loaders.md").read_text()
BLOCKS = re.findall(r"<!-- run: (\S+) -->\n *```console\n(.*?)\n *```", PAGE, re.DOTALL)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """Each command in a block of a console, with the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for line in textwrap.dedent(block).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


@pytest.mark.loaders
@pytest.mark.parametrize(("package", "block"), BLOCKS)
def test_the_commands_print_what_the_page_shows(package: str, block: str, tmp_path: Path) -> None:
    """The test fails once a loader is fixed."""
    path = f"{environment_of(package)}:{os.environ['PATH']}"
    for command, printed in commands(block):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if printed:
            assert all(line in done.stdout + done.stderr for line in printed), done.stderr
        else:
            assert (done.stdout, done.returncode) == ("", 0), done.stderr
