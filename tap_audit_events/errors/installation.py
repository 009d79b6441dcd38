"""How this installation of the package gets the libraries of an extra."""

from __future__ import annotations

import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Final

PACKAGE: Final = "tap-audit-events"


def command_for(extra: str, library: str) -> str:
    """A shell command that adds the libraries of an extra and keeps everything else.

    It names the libraries and this environment, never the package: installing the package again
    would remove its other extras, and its name alone may mean another package on an index.

    Args:
        extra: as in `pyproject.toml`, for example ``arrow``.
        library: what is missing; named if the package's metadata is missing too.
    """
    libraries = _libraries(extra) or [library]
    prefix = Path(sys.prefix)
    python = sys.executable or "python3"
    if (prefix / "pipx_metadata.json").exists():
        command = ["pipx", "inject", prefix.name, *libraries]
    elif find_spec("pip") is None:  # uv creates environments without it
        command = ["uv", "pip", "install", "--python", python, *libraries]
    else:
        command = [python, "-m", "pip", "install", *libraries]
    return shlex.join(command)


def _libraries(extra: str) -> list[str]:
    """The requirements of an extra, without environment markers."""
    try:
        declared = requires(PACKAGE) or []
    except PackageNotFoundError:  # run from a source tree that is not installed
        return []
    parted = [requirement.partition(";") for requirement in declared]
    return [
        name.strip()
        for name, _, marker in parted
        if f'extra == "{extra}"' in marker.replace("'", '"')
    ]
