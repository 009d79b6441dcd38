"""What the end of a body seems to say, before the body is read."""

from __future__ import annotations

import re

from tap_audit_events.events.instants import Instant, parse_instant

_CURSOR_KEY = b'"nextCursor"'
_CURSOR_BEHIND_KEY = re.compile(rb'\s*:\s*"([ !#-\[\]-~]+)"\s*\}\s*\Z')
_BEFORE_A_KEY = b",{ \t\r\n"
_LONGEST_CURSOR = 4096
_TIME_KEY = b'"occurredAt"'
_TIME_BEHIND_KEY = re.compile(rb'\s*:\s*"([!#-\[\]-~]+)"')
_LONGEST_EVENT = 1 << 16


def likely_cursor(body: bytes) -> str | None:
    """The cursor where it stands at the end of a body, which has not been read otherwise.

    It is the one that `split_page` finds wherever the body is JSON and names `nextCursor` once.
    """
    key = body.rfind(_CURSOR_KEY, max(0, len(body) - _LONGEST_CURSOR))
    match = _CURSOR_BEHIND_KEY.match(body, key + len(_CURSOR_KEY)) if key > 0 else None
    if match is None or body[key - 1 : key] not in _BEFORE_A_KEY:
        return None
    return match[1].decode()


def likely_newest(body: bytes) -> Instant | None:
    """The time of the last event of a body, which has not been read otherwise.

    It is right where that event holds no other `occurredAt` behind its own; None where no time
    stands near the end.
    """
    key = body.rfind(_TIME_KEY, max(0, len(body) - _LONGEST_EVENT))
    match = _TIME_BEHIND_KEY.match(body, key + len(_TIME_KEY)) if key >= 0 else None
    try:
        return parse_instant(match[1].decode()) if match else None
    except ValueError:
        return None
