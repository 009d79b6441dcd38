"""The shape of a record: the unchanged event, or one with properties that some loaders need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tap_audit_events.events.exact_json import JsonText, decode_fields, decode_with, encode
from tap_audit_events.events.stream_names import ORGANIZATION_KEY

RAW_EVENT: Final = "raw_event"
"""The property that holds the whole event."""

_NULL: Final = "null"


@dataclass(frozen=True, slots=True)
class RecordShape:
    """The changes that turn an event into a record; by default none.

    Every other value keeps the bytes that the service sent.

    Attributes:
        details_as_text: ``action.details`` becomes a string that contains its JSON text. A missing
            or null value stays unchanged.
        has_raw_event: a further property ``raw_event`` holds the whole event as JSON text.
        organization_id: value of a further property ``organization_id``, None if there is none. A
            field of the event that has the same name is then only in ``raw_event``.
    """

    details_as_text: bool = False
    has_raw_event: bool = False
    organization_id: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the record is the event."""
        return not (self.details_as_text or self.has_raw_event) and self.organization_id is None

    def apply(self, text: JsonText) -> JsonText:
        """The record of an event, also on one line; `ContractError` if it is nested too deeply."""
        return text if self.is_plain else decode_with(self._shaped, text)

    def _shaped(self, text: JsonText) -> bytes:
        record: dict[str, Any] = decode_fields(text)
        if self.details_as_text and "action" in record:
            record["action"] = _with_details_as_text(record["action"])
        if self.has_raw_event:
            record[RAW_EVENT] = _as_string(text)
        if self.organization_id is not None:
            record[ORGANIZATION_KEY] = self.organization_id
        return encode(record)


def _with_details_as_text(action: JsonText) -> object:
    """The action with its details as text; unchanged if it has none, or is not an object."""
    try:
        fields: dict[str, Any] = decode_fields(action)
    except msgspec.ValidationError:
        return action
    if "details" not in fields or (details := _as_string(fields["details"])) == _NULL:
        return action
    fields["details"] = details
    return fields


def _as_string(text: JsonText) -> str:
    return bytes(text).decode()
