"""Which faults strike which request."""

from tap_audit_events.sandbox.faults import Fault
from tap_audit_events.sandbox.seen import SeenRequest


class FaultPlan:
    """The faults of a service, and how many requests each has seen."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._chosen: list[int] = []

    def add(self, fault: Fault, requests_before: int) -> None:
        """Take a fault; without `only`, its `when` counts the requests before it too."""
        self._faults.append(fault)
        self._chosen.append(0 if fault.only else requests_before)

    def striking(self, seen: SeenRequest) -> list[Fault]:
        """The faults of a request, in the order they were added."""
        return [fault for index, fault in enumerate(self._faults) if self._strikes(index, seen)]

    def _strikes(self, index: int, seen: SeenRequest) -> bool:
        fault = self._faults[index]
        if fault.only is not None and not fault.only(seen):
            return False
        self._chosen[index] += 1
        return fault.strikes(self._chosen[index])
