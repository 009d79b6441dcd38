"""A lock on a file or folder, so that two runs never write to it at the same time.

Some mounts refuse locks. There, a file that names the run which holds the lock takes their place.
"""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.outputs.durable import exists, is_at, output_errors, unusable

_ATTEMPTS: Final = 100
"""More often, the files of a mount are not those that were opened: its numbers of files change."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a path. The system releases it when the process ends.

    The lock is on a hidden file next to the path, which is removed at the end.

    Raises:
        SettingsError: another process holds it, the path has no name, or its folder does not exist.
        OutputError: the folder cannot be written to.
    """
    if not path.name:
        raise unusable(f"{path} cannot be written: name a file or a folder in it")
    with output_errors(path):
        if not exists(path.parent):
            raise unusable(f"The folder of {sanitize(path)} does not exist: create it")
        release = _acquire(path)
    try:
        yield
    finally:
        release()


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder itself, which leaves no file behind; wait until it is free.

    Some network file systems lock only files: then there is no lock.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _acquire(path: Path) -> Callable[[], None]:
    """Lock a path, and return the function that releases the lock."""
    lock = path.with_name(f".{path.name}.lock")
    for _ in range(_ATTEMPTS):
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(lock, descriptor):
                break
        except BlockingIOError:
            os.close(descriptor)
            raise _busy(path, "wait until it has ended, or end it") from None
        except OSError:  # the mount has no locks
            os.close(descriptor)
            with suppress(OSError):
                lock.unlink()
            return _claim(path)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder has removed the file: try again with a new one
    else:
        return _claim(path)

    def release() -> None:
        with suppress(OSError):  # closing releases the lock anyway
            lock.unlink()
        os.close(descriptor)

    return release


def _claim(path: Path) -> Callable[[], None]:
    """Create the file that says that this run holds the lock of a path.

    A run that was killed leaves its file. It is replaced if it is of this machine; of another
    one, it is not known whether the run has ended.
    """
    claim = path.with_name(f".{path.name}.owner")
    own = f"{os.getpid()} {platform.node()}"
    try:
        descriptor = os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if not _has_ended(claim.read_text("utf-8", "replace")):
            next_step = f"wait until it has ended. If it was killed, remove {sanitize(claim)}"
            raise _busy(path, next_step) from None
        descriptor = os.open(claim, os.O_WRONLY | os.O_TRUNC)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(own)

    def release() -> None:
        with suppress(OSError):
            claim.unlink()

    return release


def _has_ended(owner: str) -> bool:
    """Whether the run of a claim was one of this machine, and does not exist any more."""
    number, _, machine = owner.partition(" ")
    if machine != platform.node() or not number.isdecimal():
        return False
    if int(number) == os.getpid():  # in a container, each run may have the same number
        return True
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it exists, and belongs to another user
        return False
    return False


def _busy(path: Path, next_step: str) -> SettingsError:
    problem = f"Another run is writing to {sanitize(path)}: {next_step}"
    return SettingsError([problem], "AE-BUSY")
