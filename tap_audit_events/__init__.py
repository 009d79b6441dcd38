"""The audit events of organizations: a Singer tap, and the class `AuditEvents` for Python."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tap_audit_events.api.audit_events import AuditEvents
    from tap_audit_events.api.event_page import EventPage
    from tap_audit_events.errors.exceptions import (
        AuditEventsError,
        ContractError,
        OrganizationsError,
        RefusedError,
        RetryableError,
        ServiceError,
        SettingsError,
        StoppedError,
    )
    from tap_audit_events.events.ocsf.mapping import OcsfMapping

__all__ = [
    "AuditEvents",
    "AuditEventsError",
    "ContractError",
    "EventPage",
    "OcsfMapping",
    "OrganizationsError",
    "RefusedError",
    "RetryableError",
    "ServiceError",
    "SettingsError",
    "StoppedError",
]

_MODULES: Final = {
    "AuditEvents": "api.audit_events",
    "EventPage": "api.event_page",
    "OcsfMapping": "events.ocsf.mapping",
}
"""The modules of the public names; names without an entry are in ``errors.exceptions``."""


if not TYPE_CHECKING:  # else a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used: the tap needs none of them."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - costs time at every start

        module = _MODULES.get(name, "errors.exceptions")
        return getattr(import_module(f"{__name__}.{module}"), name)

    def __dir__() -> list[str]:
        """The public names, for `help` and the completion of a notebook."""
        return __all__
