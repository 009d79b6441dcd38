"""The service of interface.md, served on this machine, with faults on request.

It is for trying out the tap, for tests and for benchmarks. It shares no code with the tap, so that
a mistake is not in both.
"""

from tap_audit_events.sandbox.data.events import ORGANIZATION_ID, generate
from tap_audit_events.sandbox.faults import Fault
from tap_audit_events.sandbox.service import ACCESS_TOKEN, Service
from tap_audit_events.sandbox.serving import serve

__all__ = ["ACCESS_TOKEN", "ORGANIZATION_ID", "Fault", "Service", "generate", "serve"]
