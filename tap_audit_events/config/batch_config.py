"""The setting ``batch_config``: whether, where and how records are written into batch files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from tap_audit_events.config import validators
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.errors.redaction import register_possible_secret

DEFAULT_EVENTS: Final = 10_000
"""Events in a batch file, as the SDK's default. A target may hold a file in memory as a whole."""

LOCAL: Final = "file://"
"""The beginning of the URL of a local folder."""

_MAX_EVENTS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class BatchConfig:
    """How batch files are written; the SDK defines the names.

    Attributes:
        compression: ``gzip`` or ``none``.
        root: URL of the folder for the files, without a slash at its end.
        prefix: beginning of the files' names.
        params: options of a file system that is not local, for `fsspec`.
        batch_size: maximum number of events in a file.
    """

    compression: str
    root: str
    prefix: str
    params: Mapping[str, Any]
    batch_size: int


def read_batch_config(value: Any, *, tokens: Iterable[str] = ()) -> BatchConfig | None:
    """Check ``batch_config``; None if it is unset or null. The files' URLs must not contain tokens.

    `SettingsError` has one line for each thing to fix.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise SettingsError(["batch_config must be an object with encoding, storage, batch_size"])
    problems: list[str] = []
    given = _known(value, "batch_config", ("encoding", "storage", "batch_size"), problems)
    for part, inner in _PARTS.items():
        given |= _known(given.get(part), f"batch_config.{part}", inner, problems)
    values: dict[str, Any] = {}
    for path, (validate, default) in _SETTINGS.items():
        name = path.rpartition(".")[2]
        try:
            values[name] = validate(default if given.get(name) is None else given[name])
        except ValueError as error:
            problems.append(f"batch_config.{path} {error}")
    names = f"{values.get('root')} {values.get('prefix')}".lower()
    if any(token.lower() in names for token in tokens):
        problems.append("batch_config.storage contains the access token: remove it from there")
    if problems:
        raise SettingsError(problems)
    del values["format"]  # there is only one format
    return BatchConfig(**values)


def _known(value: Any, path: str, names: tuple[str, ...], problems: list[str]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        problems.append(f"{path} must be an object with {', '.join(names)}")
        return {}
    problems.extend(
        f"{path} has no setting {sanitize(name, 60)}: it has {', '.join(names)}"
        for name in value
        if name not in names
    )
    return {name: value[name] for name in names if name in value}


def _root(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or value.rstrip("/").endswith(":"):
        raise ValueError("must be a folder, for example file:///var/lib/audit-events/batches")
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


def _prefix(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable() or {"/", "\\"} & {*value}:
        raise ValueError("must be the beginning of a file name; folders belong in storage.root")
    return value


def _parameters(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError('must be an object, for example {"endpoint_url": "…"}')
    return value


_PARTS: Final = {"encoding": ("format", "compression"), "storage": ("root", "prefix", "params")}
_SETTINGS: Final[dict[str, tuple[Callable[[Any], Any], Any]]] = {
    "encoding.format": (validators.one_of("jsonl"), None),
    "encoding.compression": (validators.one_of("gzip", "none"), "none"),
    "storage.root": (_root, None),
    "storage.prefix": (_prefix, ""),
    "storage.params": (_parameters, {}),
    "batch_size": (validators.integer(1, _MAX_EVENTS), DEFAULT_EVENTS),
}
"""The validator and the default of each setting."""
