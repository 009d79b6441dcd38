"""The setting ``batch_config``: whether, where and how records are written into batch files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from tap_audit_events.config.fields import read_struct
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.errors.redaction import register_possible_secret

LOCAL: Final = "file://"
"""The beginning of the URL of a local folder."""


def _root(value: str) -> str:
    if value.rstrip("/").endswith(":"):
        raise ValueError(f"must be {_FOLDER}")
    url = value.rstrip("/") if "://" in value else f"{LOCAL}{_absolute(value)}"
    _register_password(url)
    try:
        url.encode()
    except UnicodeEncodeError:
        raise ValueError("is not UTF-8, so no message can name its files") from None
    return url


def _register_password(url: str) -> None:
    """Mask the password in a URL; `ValueError` if the end of the password is uncertain."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # ValueError if it is the start of a password that contains a slash
        if parts.netloc.endswith(":"):
            raise ValueError("the password begins with the slash")
    except ValueError:
        if "@" in url:
            raise ValueError(
                "is not a usable URL: percent-encode special characters of the password, such as"
                " / as %2F"
            ) from None
        return  # such as the ARN of a bucket
    register_possible_secret(parts.password or "")


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111
    except OSError as error:
        raise ValueError(
            f"is relative, and the working directory is gone: {error.strerror}"
        ) from None


def _prefix(value: str) -> str:
    if not value.isprintable() or {"/", "\\"} & {*value}:
        raise ValueError(f"must be {_BEGINNING}")
    return value


_FOLDER: Final = "a folder, for example file:///var/lib/audit-events/batches"
_BEGINNING: Final = "the beginning of a file name; folders belong in storage.root"


class _Encoding(Struct, frozen=True):
    format: Annotated[Literal["jsonl"], Meta()]
    compression: Annotated[Literal["gzip", "none"], Meta()] = "none"


class _Storage(Struct, frozen=True):
    root: Annotated[str, Meta(extra={"expected": _FOLDER, "check": _root})]
    prefix: Annotated[str, Meta(extra={"expected": _BEGINNING, "check": _prefix})] = ""
    params: Annotated[
        dict[str, Any], Meta(extra={"expected": 'an object, for example {"endpoint_url": "…"}'})
    ] = {}


class BatchConfig(Struct, frozen=True):
    """How batch files are written; the SDK defines the names.

    The root is the URL of the folder for the files, without a slash at its end; `params` are for
    `fsspec`. A target may hold a file in memory as a whole, so `batch_size` is limited.
    """

    encoding: Annotated[_Encoding, Meta()]
    storage: Annotated[_Storage, Meta()]
    batch_size: Annotated[int, Meta(ge=1, le=1_000_000)] = 10_000  # as the SDK's default


def read_batch_config(value: Any, *, tokens: Iterable[str] = ()) -> BatchConfig | None:
    """Check ``batch_config``; None if it is unset or null. The files' URLs must not contain tokens.

    `SettingsError` has one line for each thing to fix.
    """
    if value is None:
        return None
    problems: list[str] = []
    config = read_struct(BatchConfig, value, problems, "batch_config")
    names = f"{config.storage.root} {config.storage.prefix}".lower() if config else ""
    if any(token.lower() in names for token in tokens):
        problems.append("batch_config.storage contains the access token: remove it from there")
    if problems:
        raise SettingsError(problems)
    return config
