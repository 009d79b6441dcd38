"""Checks that each line on stdin is a message of the protocol, without unknown fields.

It uses `airbyte-protocol-models-pdv2`, which is generated from the protocol's definition, and
prints how many messages of each type there are.
"""

import json
import sys
from collections import Counter
from typing import Any

from airbyte_protocol.models import AirbyteMessage, AirbyteStateBlob
from pydantic import BaseModel


def unknown_fields(value: Any, path: str) -> list[str]:
    """Return the fields that no model declares; the state of a source may have any field."""
    if isinstance(value, AirbyteStateBlob):
        return []
    if isinstance(value, BaseModel):
        found = [f"{path}.{name}" for name in value.model_extra or {}]
        for name in type(value).model_fields:
            found += unknown_fields(getattr(value, name), f"{path}.{name}")
        return found
    if isinstance(value, list):
        return [name for each in value for name in unknown_fields(each, f"{path}[]")]
    return []


counts: Counter[str] = Counter()
for line in sys.stdin.buffer:
    message = AirbyteMessage.model_validate_json(line)
    unknown = unknown_fields(message, "message")
    if unknown:
        sys.exit(f"{unknown} in {line!r}")
    counts[message.type.value] += 1
json.dump(counts, sys.stdout)
