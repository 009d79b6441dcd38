#!/usr/bin/env python3
"""A Singer filter that replaces the e-mail and IP addresses in `MASKED` with their HMAC-SHA256.

    export AUDIT_EVENTS_MASK_KEY=$(cat /run/secrets/mask-key)
    tap-audit-events --config config.json | python3 mask.py | target-jsonl

The same address gives the same 64 hexadecimal digits, so that events can be counted and joined
by person. Without the key, nobody can test whether a hash belongs to an address. Nothing else
changes, and numbers keep every digit. The script needs only Python.
"""

import hashlib
import hmac
import json
import os
import re
import signal
import sys
from typing import Any

MASKED = [("actor", "email"), ("entity", "email"), ("context", "requestIp")]
MIN_KEY = 32
NUMBER = re.compile(r'"\\u0000(.*?)\\u0000"')  # no text of the tap has a NUL character


def main() -> None:
    """Copy the messages from stdin to stdout."""
    key = os.environ.get("AUDIT_EVENTS_MASK_KEY", "").encode()
    if len(key) < MIN_KEY:
        sys.exit(f"mask.py: AUDIT_EVENTS_MASK_KEY needs at least {MIN_KEY} bytes")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # if the target ends, end without a traceback
    for line in sys.stdin.buffer:
        message = json.loads(line, parse_int=as_written, parse_float=as_written)
        if message["type"] == "BATCH" or "raw_event" in message.get("record", {}):
            sys.exit("mask.py: batch_config and raw_event would pass addresses on unmasked")
        if message["type"] == "SCHEMA" and is_flat(message["schema"]["properties"]):
            sys.exit("mask.py: flattening would pass addresses on unmasked")
        if message["type"] == "RECORD":
            mask(message["record"], key)
            line = NUMBER.sub(r"\1", json.dumps(message)).encode() + b"\n"  # noqa: PLW2901
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def as_written(number: str) -> str:
    """Return the number as text between NUL characters, because `json` would round it."""
    return f"\0{number}\0"


def is_flat(properties: dict[str, Any]) -> bool:
    """Whether a schema has fields such as ``actor__email`` next to or instead of ``actor``."""
    return any(name.startswith(f"{group}_") for name in properties for group, _ in MASKED)


def mask(record: dict[str, Any], key: bytes) -> None:
    """Replace the addresses in a record, except those that are absent or null."""
    for group, field in MASKED:
        fields = record.get(group)
        if fields is not None and fields.get(field) is not None:
            address = str(fields[field]).strip().lower().encode()
            fields[field] = hmac.new(key, address, hashlib.sha256).hexdigest()


if __name__ == "__main__":
    main()
