"""An object store with the interface of S3, on loopback; it checks conditional writes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import boto3
import requests

KEY_ID: Final = "AKIAQ7EXAMPLE4KEYID9"
SECRET: Final = "SeCr3t/ofThe+Store"

_SERVE: Final = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
"""In a process of its own: the library that writes tables may keep all threads of one waiting."""


@dataclass(frozen=True)
class ObjectStore:
    """A running store, which has one bucket."""

    url: str
    bucket: str
    process_id: int

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process that may use the store."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def keys(self, prefix: str = "") -> list[str]:
        """The names of the objects whose names begin in a certain way."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        return [each["Key"] for page in pages for each in page.get("Contents", [])]

    def download(self, prefix: str, folder: Path) -> Path:
        """Copy the objects below a prefix into an empty folder."""
        for key in self.keys(f"{prefix}/"):
            path = folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            self._client.download_file(self.bucket, key, str(path))
        return folder / prefix

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Within the block, the store accepts connections, but does not respond."""
        os.kill(self.process_id, signal.SIGSTOP)
        yield
        os.kill(self.process_id, signal.SIGCONT)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Within the block, the store does not accept the credentials."""
        requests.post(f"{self.url}/moto-api/reset-auth", data=b"0", timeout=60).raise_for_status()
        yield
        requests.post(f"{self.url}/moto-api/reset-auth", data=b"inf", timeout=60).raise_for_status()

    @property
    def _client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
        )


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Start a store with a new bucket, and stop it at the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        store = ObjectStore(url, f"b-{uuid4()}", server.pid)
        requests.put(f"{store.url}/{store.bucket}", timeout=60).raise_for_status()
        yield store
        server.stdin.close()
        server.kill()
