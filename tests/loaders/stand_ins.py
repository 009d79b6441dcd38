"""HTTP servers on loopback that store what loaders send to Elasticsearch and BigQuery.

They accept everything. They do not show what the real services would refuse, such as a mapping that
does not fit.
"""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

from tests.loaders.comparison import exact

Document = dict[str, Any]


class StandIn(ThreadingHTTPServer):
    """A server with what it has received."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.resources: dict[str, Document] = {}
        self.rows: list[Document] = []
        self.jobs: list[Document] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    """Reads a request and sends a response of JSON."""

    protocol_version = "HTTP/1.1"
    server: StandIn
    headers_of_all: ClassVar[dict[str, str]] = {}
    content_type: ClassVar[str] = "application/json"

    def respond(self, path: str, body: bytes) -> tuple[int, Document, dict[str, str]]:
        raise NotImplementedError

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, document, headers = self.respond(urlsplit(self.path).path, body)
        content = b"" if self.command == "HEAD" else json.dumps(document).encode()
        self.send_response(status)
        headers = {"Content-Type": self.content_type, **self.headers_of_all, **headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 - the names of the base class

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class ElasticsearchHandler(_Handler):
    """Stores documents by their id; a document without an id is always new."""

    headers_of_all: ClassVar[dict[str, str]] = {"X-Elastic-Product": "Elasticsearch"}
    content_type = "application/vnd.elasticsearch+json;compatible-with=8"

    def respond(self, path: str, body: bytes) -> tuple[int, Document, dict[str, str]]:
        if path == "/_bulk":
            return 200, {"took": 1, "errors": False, "items": self._index(body)}, {}
        if self.command == "PUT":
            self.server.resources[path] = {}
        return 200 if path in self.server.resources else 404, {"acknowledged": True}, {}

    def _index(self, body: bytes) -> list[Document]:
        lines = body.splitlines()
        items = []
        for action, source in zip(lines[::2], lines[1::2], strict=True):
            target = json.loads(action)["index"]
            document_id = target.get("_id", f"generated-{len(self.server.rows)}")
            kept = [row for row in self.server.rows if row["_id"] != document_id]
            self.server.rows = [*kept, {"_id": document_id, **target, "_source": exact(source)}]
            items.append({"index": {"_id": document_id, "status": 201, "result": "created"}})
        return items


class BigQueryHandler(_Handler):
    """Stores datasets and tables, and the rows of load jobs, which are uploaded with gzip."""

    def respond(self, path: str, body: bytes) -> tuple[int, Document, dict[str, str]]:
        if path.startswith("/upload/"):
            self.server.jobs.append(json.loads(body))
            return 200, {}, {"Location": f"{self.server.url}/session/{len(self.server.jobs)}"}
        if path.startswith("/session/"):
            self.server.rows += [exact(line) for line in gzip.decompress(body).splitlines()]
            return 200, self._done(self.server.jobs[int(path.rpartition("/")[2]) - 1]), {}
        if self.command == "POST":
            return 200, self._create(path, json.loads(body)), {}
        if path in self.server.resources:
            return 200, self.server.resources[path], {}
        return 404, {"error": {"code": 404, "message": "Not found"}}, {}

    def _create(self, path: str, document: Document) -> Document:
        reference = document.get("tableReference") or document["datasetReference"]
        name = reference.get("tableId") or reference["datasetId"]
        self.server.resources[f"{path}/{name}"] = document
        return document

    def _done(self, job: Document) -> Document:
        return {**job, "status": {"state": "DONE"}, "statistics": {"load": {"outputRows": "1"}}}


@contextmanager
def stand_in(handler: type[_Handler]) -> Iterator[StandIn]:
    """Serve until the end of the block."""
    with StandIn(handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
