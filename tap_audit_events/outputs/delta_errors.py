"""The errors of a Delta table and of the store it is in, as one line each."""

from __future__ import annotations

import os
import re
from typing import Final

from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.errors.redaction import register_secret

_SECRET: Final = re.compile("(AWS|AZURE|GOOGLE)_.*(KEY|SECRET|TOKEN|SAS|PASSWORD)", re.IGNORECASE)
"""The names of variables from which object stores read credentials."""

_COLORS: Final = re.compile("\x1b\\[[0-9;]*m")
_PARAMETERS: Final = re.compile(r"(?<=[^\s?])\?[^\s?]\S*")
"""The parameters of a URL; a signature may be one of them."""

_RESPONSE: Final = re.compile("<Code>(.*?)</Code>.*?<Message>(.*?)</Message>", re.DOTALL)

_NEXT_STEPS: Final = (
    ("NoSuchBucket|ContainerNotFound|bucket does not exist", "create the bucket, or fix its name"),
    ("latest/api/token|[Mm]etadata[./]|credential|Account must be specified",
     "set the credentials in the environment; docs/export.md says how"),
    (r"\b401\b|\b403\b|AccessDenied|Forbidden",
     "check the credentials, and that they allow to list, read and write there"),
    ("sending request|timed out|dns error|Connect",
     "check the network, the region and the endpoint"),
    (r"os error (27|28|122)\b", "free space"),
    (r"os error (1|13|30)\b", "allow to write there, or name another folder"),
    ("CommitFailed|log segment|Kernel error|checkpoint",
     "check that no file of _delta_log is missing or damaged"),
)  # fmt: skip
"""What to do about errors; the first text that is found counts."""


def register_secrets() -> None:
    """Mask the credentials of object stores from now on."""
    register_secret(*(value for name, value in os.environ.items() if _SECRET.match(name)))


def reason_of(error: Exception) -> str:
    """What the library or the store says, on one line, with the next step."""
    text = _PARAMETERS.sub("", _COLORS.sub("", str(error)))
    next_step = next((step for found, step in _NEXT_STEPS if re.search(found, text)), "")
    response = _RESPONSE.search(text)
    # The library tells what it did, from the outermost call to the cause.
    causes = response.groups() if response else text.split("↳")[-3:]
    reason = sanitize(": ".join(" ".join(each.split()).rstrip(".") for each in causes))
    return f"deltalake says {reason}" + (f": {next_step}" if next_step else "")
