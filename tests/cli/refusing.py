"""Runs the command on a mount that refuses some calls, as shared folders and network mounts do.

REFUSED lists them: `fsync` of files and folders, `chmod`, `flock`, and `listing`, as the working
directory may be written to but not read. FAILING_FOLDER is a folder whose flush fails, as on a
broken disk.
"""

import errno
import fcntl
import os
import stat
from typing import Any

from tap_audit_events.cli.command import main

REFUSED = {
    "fsync": (errno.EINVAL, os),
    "chmod": (errno.EPERM, os),
    "flock": (errno.ENOLCK, fcntl),
}


def refuses(names: list[str], failing_folder: str) -> None:
    """Replace the calls of these names in this process."""
    for name in {*names} & {*REFUSED}:
        number, module = REFUSED[name]
        setattr(module, name, _refusing(number))
    call_open, call_fsync = os.open, os.fsync

    def opening(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if "listing" in names and str(path) == os.getcwd():  # noqa: PTH109
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return call_open(path, flags, *more, **options)

    def flushing(descriptor: int) -> None:
        status = os.fstat(descriptor)
        is_failing = failing_folder and os.path.samestat(status, os.stat(failing_folder))  # noqa: PTH116
        if is_failing and stat.S_ISDIR(status.st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        call_fsync(descriptor)

    os.open, os.fsync = opening, flushing  # type: ignore[assignment]


def _refusing(number: int) -> Any:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


if __name__ == "__main__":
    refuses(os.environ.get("REFUSED", "").split(), os.environ.get("FAILING_FOLDER", ""))
    raise SystemExit(main())
