"""Serves while a ``with`` block runs. Only serving needs the extra `sandbox`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tap_audit_events.sandbox.service import Service
from tap_audit_events.sandbox.several import SeveralServices

if TYPE_CHECKING:
    from tap_audit_events.sandbox.server import SandboxServer


@contextmanager
def serve(service: Service | SeveralServices, port: int = 0) -> Iterator[SandboxServer]:
    """Serve until the block ends; port 0 is a free one.

    Raises OSError if the port is in use, and ModuleNotFoundError without the extra `sandbox`.
    """
    from tap_audit_events.sandbox.server import SandboxServer  # noqa: PLC0415 - an extra

    server = SandboxServer(service, port)
    try:
        yield server
    finally:
        server.stop()
