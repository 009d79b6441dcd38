"""The `_bulk` operation of OpenSearch and Elasticsearch, for the receiver of the tests."""

import json
import re
import threading
from collections.abc import Callable, Iterable
from typing import Any

from tests.shipping.receiver import Request, Status

Document = dict[str, Any]
Result = dict[str, Any]

MAX_ID_BYTES = 512
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z")
_CREATED: Result = {"status": 201}
_CONFLICT: Result = {"status": 409, "error": {"type": "version_conflict_engine_exception"}}


class Bulk:
    """An index without documents, which creates each document once.

    Attributes:
        documents: what is in the index, by `_id`.
        result_of: what becomes of a new document, instead of being created; None to create it.
        changed: changes the response before it is sent.
    """

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.result_of: Callable[[Document], Result | None] = lambda _: None
        self.changed: Callable[[dict[str, Any]], Any] = lambda response: response
        self._has_more = threading.Condition()

    @property
    def ids(self) -> list[str]:
        """The ids of the events in the index, in the order in which they were created."""
        return [document["id"] for document in self.documents.values()]

    def wait_for(self, count: int) -> None:
        """Wait until the index has so many documents."""
        with self._has_more:
            assert self._has_more.wait_for(lambda: len(self.documents) >= count, 60)

    def events(self, request: Request) -> list[Document]:
        return [document for _, document in _operations(request)]

    def response(self, request: Request) -> Status:
        with self._has_more:
            results = [self._create(*operation) for operation in _operations(request)]
            self._has_more.notify_all()
        errors = any("error" in result for result in results)
        response = {"errors": errors, "items": [{"create": result} for result in results]}
        return Status(200, body=json.dumps(self.changed(response)).encode())

    def _create(self, id_: str, document: Document) -> Result:
        if id_ in self.documents:
            return _CONFLICT | {"_id": id_}
        result = self.result_of(document) or _CREATED
        if result == _CREATED:
            self.documents[id_] = document
        return {"_id": id_} | result


def _operations(request: Request) -> list[tuple[str, Document]]:
    """The ids and documents of a request; ValueError if it is not one that creates documents."""
    path, _, query = request.path.partition("?")
    if not path.endswith("/_bulk") or "filter_path=errors,items." not in query:
        raise ValueError("another path or query")
    if request.headers.get("content-type") != "application/x-ndjson":
        raise ValueError(f"content type {request.headers.get('content-type')}")
    *lines, rest = request.body.split(b"\n")
    if rest or not lines or len(lines) % 2:
        raise ValueError("not pairs of whole lines")
    return [_operation(*map(_read, pair)) for pair in zip(lines[::2], lines[1::2], strict=True)]


def _operation(action: Document, document: Document) -> tuple[str, Document]:
    if action.keys() != {"create"} or action["create"].keys() != {"_id"}:
        raise ValueError(f"the action {action}")
    id_ = action["create"]["_id"]
    if not 0 < len(id_.encode()) <= MAX_ID_BYTES:
        raise ValueError(f"the _id {id_}")
    if not _TIME.fullmatch(document.get("@timestamp", "")):
        raise ValueError(f"@timestamp {document.get('@timestamp')}")
    return id_, document


def _read(line: bytes) -> Document:
    def without_duplicates(fields: Iterable[tuple[str, Any]]) -> Document:
        pairs = list(fields)
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a field is there twice")
        return dict(pairs)

    document = json.loads(line, object_pairs_hook=without_duplicates)
    if not isinstance(document, dict):
        raise ValueError("not an object")
    return document
