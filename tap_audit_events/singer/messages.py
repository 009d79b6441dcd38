"""RECORD, SCHEMA and STATE lines, and the writer that puts them on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from singer_sdk.singerlib import Message, SchemaMessage, SingerMessageType, StateMessage
from singer_sdk.singerlib.encoding import GenericSingerWriter

from tap_audit_events.errors.redaction import contains_secret, redact_json
from tap_audit_events.events.exact_json import JsonText, encode
from tap_audit_events.reporting.stdout import LineWriter, encoded_state


class MessageWriter(LineWriter, GenericSingerWriter[bytes, Message]):
    """Writes one message per line, in UTF-8, through its own buffer.

    Records are buffered. Every other message flushes the buffer: once a STATE is written, the STATE
    and every record before it are in the pipe.
    """

    has_open_file: Final = False
    """Records are written into the same stream as all other messages: see `BatchFiles`."""

    def serialize_message(self, message: Message) -> bytes:
        """A message as one line of JSON, with every digit of its numbers.

        Secrets are masked in every message except RECORD.
        """
        if isinstance(message, StateMessage):
            # `to_dict` would copy it.
            return encoded_state({"type": message.type, "value": message.value})
        value = message.to_dict()
        if isinstance(message, SchemaMessage):
            _drop_missing_bookmarks(value)
        line = encode(value)
        if message.type == SingerMessageType.RECORD or not contains_secret(line.decode()):
            return line
        return encode(redact_json(value))

    def write_message(self, message: Message) -> None:
        """Write a message, except a STATE that is already the last line.

        Raises:
            OutputError: it cannot be written, for example because the reader closed the pipe.
        """
        line = self.format_message(message) + b"\n"
        if line != self._last_state or self._bytes_since_state:
            self._write(line, flush=message.type != SingerMessageType.RECORD)
        if isinstance(message, StateMessage):
            self._note_state(line)

    def write_records(self, stream: str, texts: Sequence[JsonText], extracted_at: datetime) -> None:
        """Write a RECORD for each text, as `write_message` would for the decoded record."""
        if texts:
            begin = b'{"type":"RECORD","stream":%b,"record":' % encode(stream)
            end = b',"time_extracted":%b}\n' % encode(extracted_at)
            self._write(begin, (end + begin).join(texts), end)

    def complete(self) -> None:
        """Do nothing: the next message follows the records through the same buffer."""

    def close(self) -> None:
        """Do nothing: stdout stays open."""


def _drop_missing_bookmarks(schema: dict[str, Any]) -> None:
    """Remove what stream maps and flattening have removed or renamed from ``bookmark_properties``.

    The bookmark in STATE does not depend on records.
    """
    names = schema.pop("bookmark_properties", None) or []
    if kept := [name for name in names if name in schema["schema"]["properties"]]:
        schema["bookmark_properties"] = kept
