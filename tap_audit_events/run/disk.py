"""What a mount may refuse to do, although it stores the data: flush, or change a mode."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_REFUSALS: Final = frozenset(
    {
        errno.EACCES, errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOSYS, errno.ENOTSUP,
        errno.ENOTTY, errno.EOPNOTSUPP, errno.EPERM,
    }
)  # fmt: skip
"""What a mount says that does not support a call. A disk that is full or fails says others."""


@contextmanager
def best_effort() -> Iterator[None]:
    """Ignore that a mount does not support a call. Other errors of the system are raised."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder are on the disk, if the mount can do that."""
    with best_effort():
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
