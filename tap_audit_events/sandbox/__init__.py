"""The service of interface.md, served on this machine, with faults on request.

It is for trying out the tap, for tests and for benchmarks. It shares no code with the tap, so that
a mistake is not in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tap_audit_events.sandbox.data.events import ORGANIZATION_ID, generate
from tap_audit_events.sandbox.faults import Fault
from tap_audit_events.sandbox.service import ACCESS_TOKEN, Service

if TYPE_CHECKING:
    from tap_audit_events.sandbox.server import SandboxServer
    from tap_audit_events.sandbox.several import SeveralServices

__all__ = ["ACCESS_TOKEN", "ORGANIZATION_ID", "Fault", "Service", "generate", "serve"]


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
