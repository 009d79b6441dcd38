"""OpenSearch and Elasticsearch by ``_bulk``: each event is a document with an id of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import msgspec

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.errors.exceptions import sanitize, sanitize_body, sanitize_start
from tap_audit_events.events.exact_json import decode_with
from tap_audit_events.events.instants import Instant, to_nanoseconds
from tap_audit_events.outputs.durable import unusable
from tap_audit_events.outputs.receivers.connection import Connection
from tap_audit_events.outputs.receivers.receiver import Item, Outcome, Receiver
from tap_audit_events.outputs.receivers.responses import (
    Concerns,
    Received,
    ReceiverError,
    check_status,
    concern_of,
)

_FILTER: Final = (
    "filter_path=errors,items.*._id,items.*.status,items.*.failure_store,"
    "items.*.error.type,items.*.error.reason"
)
"""Keeps the response short."""

_HEADERS: Final = {"Content-Type": "application/x-ndjson"}
_ACTION: Final = b'{"create":{"_id":"%b"}}\n'

_BLOCK: Final = "cluster_block_exception"
"""Writing is blocked, most often because a disk is full."""

_OF_THE_INDEX: Final = ("index_", "invalid_index_")
"""How the types of errors begin that are about the index, whatever the event."""

_SHORT_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


class _Error(msgspec.Struct):
    type: str | None = None
    reason: str | None = None


class _Result(msgspec.Struct):
    """What became of one event.

    Attributes:
        failure_store: ``used`` if the document is in the failure store of a data stream instead.
    """

    status: int
    id: str | None = msgspec.field(name="_id", default=None)
    error: _Error | None = None
    failure_store: str | None = None

    @property
    def is_created(self) -> bool:
        return self.status // 100 == 2 and self.failure_store != "used"

    @property
    def is_there(self) -> bool:
        return self.is_created or self.status == HTTPStatus.CONFLICT

    @property
    def reason(self) -> str:
        if self.failure_store == "used":
            return "stored in the failure store of the data stream only, for its reason look there"
        if self.error is None:
            return f"status {self.status}"
        return f"status {self.status}, {sanitize(self.error.type)}: {sanitize(self.error.reason)}"

    @property
    def concerns(self) -> Concerns:
        """What an error is about."""
        type_ = (self.error and self.error.type) or ""
        if self.failure_store == "used":
            return Concerns.CONTENT
        if type_ == _BLOCK:
            return Concerns.MOMENT
        return Concerns.EVERYTHING if type_.startswith(_OF_THE_INDEX) else concern_of(self.status)


class _Operation(msgspec.Struct):
    create: _Result


class _Response(msgspec.Struct):
    errors: bool
    items: list[_Operation]


class _Id(msgspec.Struct, gc=False):
    id: str


class _Timed(msgspec.Struct, gc=False):
    timestamp: msgspec.Raw | msgspec.UnsetType = msgspec.field(
        name="@timestamp", default=msgspec.UNSET
    )


_decode_response = msgspec.json.Decoder(_Response).decode
_decode_id = msgspec.json.Decoder(_Id).decode
_decode_timed = msgspec.json.Decoder(_Timed).decode


class OpenSearch(Receiver):
    """Creates a document for each event, in the index or data stream at the end of the URL.

    The document's id is that of the event. A document that is sent again is refused with 409, and
    so counts as accepted.
    """

    def __init__(self, connection: Connection) -> None:
        parts = urlsplit(connection.url)
        path = parts.path.rstrip("/")
        index = path.rpartition("/")[2]
        if not index or index.startswith("_"):
            raise unusable(
                "--to must end with an index or a data stream, such as"
                " opensearch:https://search.example.com:9200/audit-events"
            )
        query = "&".join(filter(None, [parts.query, _FILTER]))
        url = parts._replace(path=f"{path}/_bulk", query=query).geturl()
        self._connection = connection.at(url)

    def bodies(self, page: EventPage, texts: Sequence[bytes], /) -> Sequence[bytes]:
        return [
            b"%b%b\n" % (_action(page.organization_id, raw), _document(text, instant))
            for raw, text, instant in zip(page.raw, texts, page.instants, strict=True)
        ]

    def send(self, batch: Sequence[Item]) -> Outcome:
        response = self._connection.post("", b"".join(item.body for item in batch), _HEADERS)
        if response.status == HTTPStatus.FORBIDDEN and _BLOCK.encode() in response.body:
            raise self._error(f"status 403, {sanitize_body(response.body)}")
        check_status(self._connection.name, response)
        return self._outcome(self._results(response, batch))

    def wait(self) -> None:
        """Nothing: the response was the acknowledgement."""

    def _results(self, response: Received, batch: Sequence[Item]) -> list[_Result]:
        """The results in a response: one for each event, in their order.

        If all are accepted, there may be one for all of them: Tenzir responds so.
        """
        try:
            decoded = _decode_response(response.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise self._not_understood(response) from None
        results = [operation.create for operation in decoded.items]
        are_created = all(each.is_created for each in results)
        is_one_for_all = len(results) == 1 and are_created
        if (are_created and decoded.errors) or not (is_one_for_all or _are_of(results, batch)):
            raise self._not_understood(response)
        return results

    def _outcome(self, results: Sequence[_Result]) -> Outcome:
        failed = {place: each for place, each in enumerate(results) if not each.is_there}
        for each in failed.values():
            if each.concerns is Concerns.EVERYTHING:
                raise self._error(each.reason, Concerns.EVERYTHING)
        again = [place for place, each in failed.items() if each.concerns is Concerns.MOMENT]
        why_again = results[again[0]].reason if again else ""
        if again and len(again) == len(results):  # no progress, which bounds the retries
            raise self._error(why_again)
        refused = {place: failed[place].reason for place in sorted(failed.keys() - again)}
        return Outcome(refused, again, why_again)

    def _error(self, reason: str, concerns: Concerns = Concerns.MOMENT) -> ReceiverError:
        return ReceiverError(f"{self._connection.name}: {reason}", concerns)

    def _not_understood(self, response: Received) -> ReceiverError:
        start = sanitize_start(response.body)
        return self._error(f"its response is not that of _bulk to these events: {start}")


class Elasticsearch(OpenSearch):
    """The same, where a token is usually an API key."""

    SCHEME = "ApiKey"


def document_id(organization_id: str, event_id: str) -> str:
    """The ``_id`` of an event's document: at most 165 characters that need no escapes.

    It is ``ORGANIZATION:ID``; if the id of the event is longer than 128 characters or has others
    than letters of ASCII, digits, ``.``, ``_`` and ``-``, then ``ORGANIZATION~SHA256`` with the
    digest of the id.
    """
    organization = organization_id.lower()
    if _SHORT_ID.fullmatch(event_id):
        return f"{organization}:{event_id}"
    return f"{organization}~{sha256(event_id.encode()).hexdigest()}"


def _action(organization_id: str, raw: bytes) -> bytes:
    event_id = decode_with(_decode_id, raw).id
    return _ACTION % document_id(organization_id, event_id).encode()


def _document(text: bytes, instant: Instant) -> bytes:
    """An event with the field ``@timestamp``, unless it has such a field already."""
    may_have_it = b'@timestamp"' in text or b"\\u" in text  # a name may be escaped
    if may_have_it and decode_with(_decode_timed, text).timestamp is not msgspec.UNSET:
        return text
    return b'{"@timestamp":"%bZ",%b' % (to_nanoseconds(instant).encode(), text[1:])


def _are_of(results: Sequence[_Result], batch: Sequence[Item]) -> bool:
    """Whether there is a result for each event, in their order."""
    return len(results) == len(batch) and all(
        result.id is None
        or result.failure_store == "used"  # where the document has another id
        or item.body.startswith(_ACTION % result.id.encode())
        for result, item in zip(results, batch, strict=True)
    )
