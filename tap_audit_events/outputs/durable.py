"""Files that are complete on the disk before they are visible under their names.

Some mounts, such as shared folders and network file systems, refuse a flush, a change of the mode
or of the owner. The run continues then, because it can neither do more nor lose an event by that.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path
from typing import IO, TypeAlias

import msgspec

from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    OutputError,
    SettingsError,
    sanitize,
)
from tap_audit_events.run.disk import best_effort, sync_folder

Rename: TypeAlias = tuple[Path, Path]
"""The path of a complete file, and its final path."""


class InPlaceError(OutputError):
    """The output is in its place, but perhaps not yet on the disk."""


def temporary(path: Path) -> Path:
    """The hidden path in the same folder for what is not complete yet."""
    return path.with_name(f".{path.name}.new")


def exists(path: Path) -> bool:
    """Whether a path exists; `OSError` if that cannot be known.

    Since Python 3.14, `Path.exists` returns False then: a state file that cannot be read for a
    moment would count as missing, and all events would be exported again.
    """
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def resolved(path: Path) -> Path:
    """The absolute path without links.

    Raises:
        OutputError: the working directory is gone, or, before Python 3.13, links lead in a circle.
    """
    with output_errors(path):
        return path.resolve()


def check_is_file(path: Path) -> None:
    """Raise `SettingsError` if a path is not a file, but a folder, a device or a pipe."""
    with output_errors(path):
        is_other = exists(path) and not path.is_file()
    if is_other:
        raise unusable(f"{sanitize(path)} exists, but is not a file: give another path")


def check_files_differ(named: Mapping[str, Path]) -> None:
    """Raise `SettingsError` if two options name the same file."""
    files = []
    for option, path in named.items():
        with output_errors(path):
            files.append((option, resolved(path), path.stat() if exists(path) else None))
    for (first, path, found), (second, other, also_found) in combinations(files, 2):
        if path == other or (found and also_found and os.path.samestat(found, also_found)):
            raise unusable(f"{first} and {second} name the same file: choose another for {second}")


def check_is_utf8(path: str, needed_by: str) -> None:
    """Raise `SettingsError` if a path is not UTF-8, which the system does not require."""
    try:
        path.encode()
    except UnicodeEncodeError:
        problem = f"The path {sanitize(path)} is not UTF-8, which {needed_by} needs"
        raise unusable(f"{problem}: choose another one") from None


def sync(file: IO[bytes]) -> None:
    """Make sure that what was written to a file is on the disk, if the mount can do that."""
    file.flush()
    with best_effort():
        os.fsync(file.fileno())


def put_in_place(source: Path, final: Path) -> None:
    """Rename a complete file or folder; it replaces the old one.

    Raises:
        OSError: it cannot be renamed.
        InPlaceError: it was renamed, but the disk fails.
    """
    os.replace(source, final)  # noqa: PTH105 - named like the system's call
    try:
        sync_folder(final.parent)
    except OSError as error:
        reason = (
            f"the disk failed after the new {sanitize(final)} was complete and in its place, so a"
            f" power failure may bring back the old one: {sanitize(error.strerror or error)}"
        )
        raise InPlaceError(reason, "AE-EXPORT") from error


def rename_all(renames: Iterable[Rename], *, resumes: bool = False) -> None:
    """Rename files to their final paths.

    Args:
        renames: the files and their final paths.
        resumes: whether an earlier call was interrupted, so that some files have their final path.

    Raises:
        FileNotFoundError: a file does not exist.
    """
    folders: dict[Path, None] = {}
    for source, final in renames:
        if not exists(final.parent):
            final.parent.mkdir(parents=True)
            folders[final.parent.parent] = None
        folders[final.parent] = None
        if not resumes or exists(source):
            os.replace(source, final)  # noqa: PTH105 - named like the system's call
    for folder in folders:
        sync_folder(folder)


def write_json(path: Path, document: object) -> Rename:
    """Write the new content of a JSON file under a hidden name, and return the rename."""
    source = temporary(path)
    try:
        with output_errors(path), create_like(path, source) as file:
            file.write(msgspec.json.encode(document) + b"\n")
            sync(file)
    except BaseException:
        with suppress(OSError):
            source.unlink(missing_ok=True)
        raise
    return source, path


def create_like(old: Path, new: Path) -> IO[bytes]:
    """Create a file that replaces an old one, if there is one, and open it for writing.

    Never may more users read it than the old one, even if the mount refuses to change a mode.
    """
    mode = stat.S_IMODE(old.stat().st_mode) if exists(old) else 0o666
    new.unlink(missing_ok=True)
    file = os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")
    try:
        keep_mode(old, new)
    except BaseException:
        file.close()
        raise
    return file


def keep_mode(old: Path, new: Path) -> None:
    """Let the same users read the new file or folder as the old one, if there is an old one."""
    if exists(old):
        before = old.stat()
        with suppress(OSError):  # only root may do this, in a container not for every user
            os.chown(new, before.st_uid, before.st_gid)
        with best_effort():
            new.chmod(stat.S_IMODE(before.st_mode))


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system or a library about an output into an `OutputError`."""
    try:
        yield
    except AuditEventsError:
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        raise OutputError(f"{sanitize(path)}: {sanitize(reason)}", "AE-EXPORT") from error


def unusable(problem: str) -> SettingsError:
    """The error for an output that cannot be used as asked."""
    return SettingsError([problem], "AE-EXPORT")
