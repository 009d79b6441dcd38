"""Reads the state of the stream from ``--state``, and creates the state for STATE messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tap_audit_events.config.input_files import check_serializable, malformed
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.errors.redaction import redact_json
from tap_audit_events.events.stream_names import STREAM

_DIGESTS: Final = "ids"
"""Key of the digests, which are not redacted, even if they look like a part of the token."""


def stream_state_in(document: Any) -> dict[str, Any]:
    """The state of the stream in the file of ``--state``, empty if there is none.

    Args:
        document: a list of Airbyte's state messages, or one of them; states of other streams are
            ignored.

    Raises:
        SettingsError: it is neither, has a type that this source does not write, or contains values
            that cannot be written as JSON.
    """
    check_serializable("state", document)
    entries = document if isinstance(document, list) else [document] if document else []
    states = list(_states(entries))
    if len(states) > 1:
        raise malformed("state", f"has more than one entry for {STREAM}: give only the last one")
    return states[0] if states else {}


def without_secrets(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of an organization, with each secret masked."""
    return {
        name: value if name == _DIGESTS else redact_json(value) for name, value in state.items()
    }


def _states(entries: list[Any]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        kind = entry.get("type") if isinstance(entry, dict) else None
        match entry:
            case {"stream": {"stream_descriptor": {"name": str(name)}, **stream}} if kind in (
                "STREAM",
                None,
            ):
                if name == STREAM:
                    yield _state(stream.get("stream_state"))
            case _:
                raise _unknown(kind)


def _state(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise malformed("state", f"has a stream_state of {STREAM} that is not an object")
    return value


def _unknown(kind: object) -> SettingsError:
    if kind in ("GLOBAL", "LEGACY"):
        return malformed(
            "state",
            f"is of the type {kind}, and this source writes the type STREAM: it comes from another"
            " source. To start over, clear the data of the stream, or run without state",
        )
    return malformed(
        "state",
        f"must be a list of Airbyte's state messages of the type STREAM"
        f"{'' if kind in (None, 'STREAM') else f', not {sanitize(kind, 60)}'}:"
        f' [{{"type": "STREAM", "stream": {{"stream_descriptor": {{"name": "{STREAM}"}},'
        ' "stream_state": {…}}}]',
    )
