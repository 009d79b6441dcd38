"""The settings of the SDK that shape the tap's records: stream maps, flattening, batch files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from tap_audit_events.config.fields import fields_of, read_fields, set_values
from tap_audit_events.errors.exceptions import SettingsError, sanitize
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


_Map = Literal["__NULL__"] | dict[str, str | list[str] | None] | None
"""The map of a stream; only ``__key_properties__`` is a list."""


def _stream_maps(value: dict[str, Any]) -> dict[str, Any]:
    maps = {name: each for name, each in value.items() if not name.startswith("__")}
    wrong = [name for name, each in maps.items() if not _is_map(each)]
    if wrong:
        raise ValueError(
            f"has entries that are neither null nor an object of texts, such as"
            f' {{"context": "__NULL__"}}: {", ".join(sanitize(name, 60) for name in wrong)}'
        )
    return value


def _is_map(value: Any) -> bool:
    try:
        msgspec.convert(value, _Map)
    except msgspec.ValidationError:
        return False
    return True


_Any = Annotated[dict[str, Any] | None, Meta(extra={"expected": "an object"})]
_Text = Annotated[str | None, Meta(extra={"expected": "a text"})]


class SdkSettings(Struct, frozen=True):
    """The settings of the SDK that shape the tap's records. The SDK defines the names."""

    batch_config: Annotated[BatchConfig | None, Meta()] = None
    stream_maps: Annotated[dict[str, Any] | None, Meta(extra={
        "expected": 'an object, for example {"audit_events": {"context": "__NULL__"}}',
        "check": _stream_maps,
    })] = None  # fmt: skip
    stream_map_config: _Any = None
    faker_config: _Any = None
    flattening_enabled: Annotated[bool, Meta()] = False
    flattening_max_depth: Annotated[int | None, Meta(ge=0)] = None
    flattening_max_key_length: Annotated[int | None, Meta(ge=1)] = None
    flattening_separator: _Text = None


_KINDS: Final = {bool: "boolean", int: "integer", str: "string"}

OF_THE_TAP: Final = {
    name: next((kind for each, kind in _KINDS.items() if field.kind is each), "object")
    for name, field in fields_of(SdkSettings).items()
}
"""The names of these settings, with their types in JSON Schema. What reads events without them
ignores them, except a repair."""


def read_sdk_settings(config: Mapping[str, Any], *, tokens: Iterable[str] = ()) -> SdkSettings:
    """Check these settings in a configuration. The URLs of batch files must not contain tokens.

    `SettingsError` has one line for each thing to fix.
    """
    problems: list[str] = []
    values = read_fields(SdkSettings, set_values(config), problems)
    batches = values.get("batch_config")
    names = f"{batches.storage.root} {batches.storage.prefix}".lower() if batches else ""
    if any(token.lower() in names for token in tokens):
        problems.append("batch_config.storage contains the access token: remove it from there")
    if values.get("flattening_enabled") and config.get("flattening_max_depth") is None:
        problems.append(
            "flattening_max_depth is missing: set it to 1 or more if flattening_enabled is true"
        )
    if problems:
        raise SettingsError(problems)
    return SdkSettings(**values)
