"""Sets up logging from the YAML file that SINGER_SDK_LOG_CONFIG names.

The SDK would read the file without a bound, and show a traceback if it cannot be used.
"""

from __future__ import annotations

import logging
import logging.config
from pathlib import Path
from typing import Any, Final

import yaml

from tap_audit_events.config.access_token import mask_possible_tokens
from tap_audit_events.errors.exceptions import SettingsError, sanitize

MAX_FILE_BYTES: Final = 1_000_000
"""Far more than a logging configuration needs; a device such as /dev/zero has no end."""


def configure_logging(path: str) -> None:
    """Set up logging from a file.

    Raises:
        SettingsError: the file cannot be read, is larger than `MAX_FILE_BYTES`, or is not a logging
            configuration.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unusable(path, f"cannot be read: {_reason(error)}") from None
    if len(text) > MAX_FILE_BYTES:
        raise _unusable(path, f"is larger than {MAX_FILE_BYTES // 1_000_000} MB")
    config = _parse(path, text)
    try:
        logging.config.dictConfig(config)
    except Exception as error:  # noqa: BLE001 - handlers and formatters of any class are created
        raise _unusable(path, f"is not a logging configuration: {_reason(error)}") from None


def _parse(path: str, text: bytes) -> dict[str, Any]:
    try:
        config = yaml.safe_load(text)
    except Exception as error:  # noqa: BLE001 - a wrong tag raises whatever its reader raises
        mark = getattr(error, "problem_mark", None)
        position = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise _unusable(path, f"is not YAML{position}") from None
    if not isinstance(config, dict):
        raise _unusable(path, "must contain a mapping, such as version: 1")
    return config


def _reason(error: Exception) -> str:
    """What is wrong, with its cause: `dictConfig` says which handler, the cause says why."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    cause = error.__cause__
    because = f" ({sanitize(str(cause))})" if cause is not None else ""
    return f"{sanitize(str(error))}{because}"


def _unusable(path: str, problem: str) -> SettingsError:
    mask_possible_tokens(path)
    return SettingsError([f"The file {sanitize(path)} that SINGER_SDK_LOG_CONFIG names {problem}"])
