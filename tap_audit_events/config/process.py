"""The first steps of each command of the package, before other modules are imported."""

from __future__ import annotations

import atexit
import errno
import gc
import logging
import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tap_audit_events.config.access_token import mask_possible_tokens
from tap_audit_events.config.names import ENVIRONMENT_PREFIX
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.errors.redacted_output import print_redacted

LEVEL_VARIABLES: Final = (f"{ENVIRONMENT_PREFIX}LOGLEVEL", "LOGLEVEL")
"""Variables that name a log level; the first that is set counts."""

STDOUT_ERRORS: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""Errors of a write to stdout that are not defects; a closed pipe raises `BrokenPipeError`."""

_M_ARENA_MAX: Final = -8
"""The option of glibc's `mallopt` for the number of memory pools."""


def guard_output(arguments: Sequence[str]) -> None:
    """Mask secrets in tracebacks from now on, including any in the arguments.

    Once the command has set up its log, it calls `redact_handlers`.
    A stderr that cannot be written to, now or at exit, is replaced by the null device.
    """
    if sys.stderr is None:
        _open_null_stderr()
    sys.excepthook = print_redacted
    mask_possible_tokens(list(arguments))
    atexit.register(_replace_closed_stderr)


def check_log_levels(environment: MutableMapping[str, str]) -> None:
    """Raise `SettingsError` if a variable in `LEVEL_VARIABLES` is not a log level.

    An empty variable is removed: the SDK would refuse it.
    """
    for name in LEVEL_VARIABLES:
        level = environment.get(name)
        if not level:
            environment.pop(name, None)
        elif level.upper() not in logging.getLevelNamesMapping():
            raise SettingsError(
                [f"{name} is not a log level: set it to DEBUG, INFO, WARNING or ERROR"]
            )


def runs_under_meltano(environment: Mapping[str, str]) -> bool:
    """Whether Meltano has started the process, with settings from its YAML file."""
    return any(name.startswith("MELTANO_") for name in environment)


def tune_memory() -> None:
    """Let the garbage collector search rarely, and all threads share one pool of memory.

    A page creates thousands of objects, but reference counting frees all of them: the collector
    would find nothing to free. By default, glibc gives each thread its own pool, so memory that one
    thread has freed is not used by another.
    """
    gc.freeze()  # objects that exist are not searched
    gc.set_threshold(100_000)
    # Other systems lack this option, and some builds of Python lack ctypes.
    with suppress(AttributeError, ImportError, OSError, TypeError):
        import ctypes  # noqa: PLC0415

        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def abandon(descriptor: int) -> None:
    """Point stdout or stderr at the null device, so that closing it at exit cannot fail again."""
    with Path(os.devnull).open("wb") as null:
        os.dup2(null.fileno(), descriptor)


def _open_null_stderr() -> None:
    """Open the null device as stderr.

    Otherwise usage errors would be printed on stdout, and messages of libraries in C would be
    written into the file or connection that gets the descriptor 2.
    """
    null = Path(os.devnull)
    sys.stderr = null.open("w", encoding="utf-8", errors="backslashreplace")
    os.dup2(sys.stderr.fileno(), 2)  # it has another number if stdin is closed too


def _replace_closed_stderr() -> None:
    """Replace stderr with the null device if it cannot be written to, such as a closed terminal.

    Otherwise Python would fail to flush it at exit, and a good run would end with exit code 120.
    """
    try:
        if sys.__stderr__ is not None:
            sys.__stderr__.flush()
    except OSError:
        abandon(2)
