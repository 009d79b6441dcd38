"""A lock on a file or folder, so that two runs never write to it at the same time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tap_audit_events.cli.outputs.durable import exists, is_at, output_errors, unusable
from tap_audit_events.errors.exceptions import SettingsError, sanitize


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
    lock = path.with_name(f".{path.name}.lock")
    with output_errors(path):
        if not exists(path.parent):
            raise unusable(f"The folder of {sanitize(path)} does not exist: create it")
        descriptor = _acquire(lock)
    try:
        if descriptor is None:
            name = sanitize(path)
            problem = f"Another run is writing to {name}: wait until it has ended, or end it"
            raise SettingsError([problem], "AE-BUSY")
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):  # closing releases the lock anyway
                lock.unlink()
            os.close(descriptor)


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


def _acquire(lock: Path) -> int | None:
    """A descriptor that holds the lock; None if another process holds it."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(lock, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder has removed the file: try again with a new one
