"""A receiver in a process of its own that acknowledges at once, and counts afterwards.

It keeps the bodies as they come. What it responds is what HTTP receivers of JSON Lines, Splunk
without acknowledgment, and `_bulk` of OpenSearch and Elasticsearch respond if they accept all.
"""

import asyncio
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final, NamedTuple, cast

from benchmarks.candidates import PROJECT

_PRODUCT: Final = json.dumps(
    {"version": {"number": "8.17.0", "build_flavor": "default"}, "tagline": "You Know, for Search"}
).encode()
_HEC: Final = b'{"text":"Success","code":0}'
_JSON: Final = b"Content-Type: application/vnd.elasticsearch+json;compatible-with=8\r\n"


class Stored(NamedTuple):
    """How many events have arrived, and how many of them are different."""

    events: int
    distinct: int


class Collector:
    """The process, as the measuring process sees it."""

    def __init__(self, stdin: IO[str], stdout: IO[str]) -> None:
        """Wait until it listens."""
        self._stdin, self._stdout = stdin, stdout
        self.port = int(stdout.readline())

    def take(self) -> Stored:
        """Count what has arrived since the last call."""
        self._stdin.write("\n")
        self._stdin.flush()
        return Stored(*json.loads(self._stdout.readline()))


@contextmanager
def start_collector() -> Iterator[Collector]:
    """Start it on a free port of this machine; it ends with the block."""
    command = [sys.executable, "-m", "benchmarks.collector"]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            stdin, stdout = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
            yield Collector(stdin, stdout)
        finally:
            process.kill()


class _Server:
    def __init__(self) -> None:
        self._bodies: list[tuple[str, bytes]] = []

    async def serve(self) -> None:
        """Serve until the end of stdin; print the counts for each of its lines."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=1 << 22)
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        while await asyncio.to_thread(sys.stdin.readline):
            events = [event for path, body in self._bodies for event in _ids(path, body)]
            self._bodies.clear()
            sys.stdout.write(json.dumps([len(events), len(set(events))]) + "\n")
            sys.stdout.flush()
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ")
                headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                if headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                content = self._response(method, path.partition("?")[0], body)
                length = b"Content-Length: %d\r\n" % len(content)
                product = b"X-Elastic-Product: Elasticsearch\r\n"
                writer.write(b"HTTP/1.1 200 OK\r\n" + product + _JSON + length + b"\r\n")
                writer.write(b"" if method == "HEAD" else content)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _response(self, method: str, path: str, body: bytes) -> bytes:
        if method in {"GET", "HEAD"}:
            return _PRODUCT
        if method != "POST" and not path.endswith("/_bulk"):
            return b'{"acknowledged":true}'
        self._bodies.append((path, body))
        if not path.endswith("/_bulk"):
            return _HEC
        action = body[2 : body.index(b'"', 2)]
        result = b'{"%b":{"status":201,"result":"created"}}' % action
        items = b",".join([result] * (body.count(b"\n") // 2))
        return b'{"took":1,"errors":false,"items":[%b]}' % items


def _ids(path: str, body: bytes) -> Iterator[Any]:
    lines = body.splitlines()
    for line in lines[1::2] if path.endswith("/_bulk") else lines:
        event = json.loads(line)
        yield event.get("event", event)["id"]


if __name__ == "__main__":
    asyncio.run(_Server().serve())
