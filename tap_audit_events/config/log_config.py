"""The YAML file that SINGER_SDK_LOG_CONFIG names, from which the SDK sets up logging."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tap_audit_events.config.access_token import mask_possible_tokens
from tap_audit_events.errors.exceptions import SettingsError, sanitize

_VARIABLE: Final = "SINGER_SDK_LOG_CONFIG"


@contextmanager
def log_config_errors(environment: MutableMapping[str, str]) -> Iterator[None]:
    """Raise `SettingsError` if the SDK cannot use the file. An empty path counts as unset."""
    path = environment.get(_VARIABLE)
    if not path:
        environment.pop(_VARIABLE, None)
        yield
        return
    mask_possible_tokens(path)
    try:
        Path(path).stat()  # the SDK would continue without a file that does not exist
        yield
    except Exception as error:  # noqa: BLE001 - handlers and formatters of any class are created
        if mark := getattr(error, "problem_mark", None):  # not the text: it may contain a token
            reason = f"it is not YAML at line {mark.line + 1}, column {mark.column + 1}"
        else:  # `dictConfig` names the handler, and the cause says why
            reason = ": ".join(map(sanitize, filter(None, (error, error.__cause__))))
        file = f"The file {sanitize(path)} that {_VARIABLE} names"
        problem = f"cannot be used as a logging configuration: {reason}"
        raise SettingsError([f"{file} {problem}"]) from None
