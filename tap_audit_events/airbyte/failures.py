"""Errors as TRACE messages, classified as Airbyte does: by who can fix them."""

from __future__ import annotations

import traceback
from typing import Final

from tap_audit_events.airbyte.messages import Message, error_trace
from tap_audit_events.errors.exceptions import (
    AuditEventsError,
    CursorRefusedError,
    OrganizationsError,
    RefusedError,
    SettingsError,
    StoppedError,
    defect,
    is_temporary,
)
from tap_audit_events.errors.redaction import redact

CONFIG: Final = "config_error"
TRANSIENT: Final = "transient_error"
SYSTEM: Final = "system_error"


def failure_type(error: AuditEventsError) -> str:
    """Whether a setting must change, a later run may succeed, or something is defective."""
    if isinstance(error, OrganizationsError):
        types = {failure_type(each) for each in error.errors.values()}
        return min(types, key=(CONFIG, SYSTEM, TRANSIENT).index)
    if is_temporary(error) or isinstance(error, StoppedError | CursorRefusedError):
        return TRANSIENT
    if isinstance(error, SettingsError | RefusedError):
        return CONFIG
    return SYSTEM


def trace_of(error: Exception, milliseconds: int) -> Message:
    """The TRACE message for an error: code, what happened, next step; of a defect, a traceback."""
    if isinstance(error, AuditEventsError):
        return error_trace(str(error), failure_type(error), milliseconds)
    trace = redact("".join(traceback.format_exception(error)))
    return error_trace(str(defect(error)), SYSTEM, milliseconds, stack_trace=trace)
