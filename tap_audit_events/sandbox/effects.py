"""Applies the faults of a request to its page, its response and the connection."""

from collections.abc import Sequence
from dataclasses import replace

from tap_audit_events.sandbox.faults import Fault
from tap_audit_events.sandbox.response import Response, error_response


class ActiveFaults:
    """The faults that concern one request, in the order they were added."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = faults

    def have(self, kind: str) -> bool:
        return any(fault.kind == kind for fault in self._faults)

    def of_kind(self, kind: str) -> list[Fault]:
        return [fault for fault in self._faults if fault.kind == kind]

    def replacement(self) -> Response | None:
        """The response that replaces the service's own, if a fault gives one."""
        for fault in self._faults:
            if fault.kind == "reset":
                return Response(0, reset=True)
            if fault.kind == "status":
                return _status(fault)
            if fault.kind == "body":
                return Response(200, (("content-type", fault.content_type),), fault.text or b"")
        return None

    def page_size(self, requested: int) -> int:
        """The largest number of events that the page may contain."""
        for fault in self._faults:
            if fault.kind == "empty":
                return 0
            if fault.kind == "short":
                return min(requested, requested // 2 if fault.events is None else fault.events)
        return requested

    @property
    def pages_back(self) -> int:
        """How many pages before the request's own cursor the repeated cursor was issued."""
        return max((fault.back for fault in self.of_kind("same-cursor")), default=0)

    def applied_to(self, response: Response) -> Response:
        """The response, sent as the faults say: later or cut."""
        for fault in self.of_kind("hang"):
            response = replace(response, wait_seconds=response.wait_seconds + fault.seconds)
        for fault in self.of_kind("cut"):
            half = len(response.body) // 2
            sent = half if fault.sent_bytes is None else fault.sent_bytes
            response = replace(response, cut_after=sent)
        return response


def _status(fault: Fault) -> Response:
    given = (("retry-after", fault.retry_after), ("location", fault.location))
    headers = tuple((name, value) for name, value in given if value is not None)
    if fault.text is not None:
        return Response(fault.code, (("content-type", fault.content_type), *headers), fault.text)
    response = error_response(fault.code, fault.err_code, fault.msg, None, headers)
    # 204 and 304 have no body (RFC 9110, 6.4.1).
    return replace(response, body=b"") if fault.code in (204, 304) else response
