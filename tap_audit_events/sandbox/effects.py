"""Applies the faults of a request to its page, its response and the connection."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

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

    def replacement(self, reused: bool) -> Response | None:
        """The response that replaces the service's own, if a fault gives one.

        `reused` says whether the connection had carried a request before.
        """
        for fault in self._faults:
            if fault.kind == "reset" or (fault.kind == "reset-reused" and reused):
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
        """The response, sent as the faults say: later, cut, dripping or with a wrong length."""
        for fault in self._faults:
            if fault.kind == "hang":
                response = replace(response, wait_seconds=response.wait_seconds + fault.seconds)
            if fault.kind == "cut":
                half = len(response.body) // 2
                sent = half if fault.sent_bytes is None else fault.sent_bytes
                response = replace(response, cut_after=sent)
            if fault.kind == "drip":
                response = replace(response, drip=(fault.sent_bytes or 1, fault.seconds))
            if fault.kind == "wrong-length":
                response = replace(response, wrong_length=True)
        return response


def _status(fault: Fault) -> Response:
    date = None if fault.retry_after_date is None else _http_date(fault.retry_after_date)
    given = (
        ("retry-after", fault.retry_after),
        ("retry-after", date),
        ("location", fault.location),
    )
    headers = tuple((name, value) for name, value in given if value is not None)
    response = error_response(fault.code, fault.err_code, fault.msg, None, headers)
    if fault.text is not None:
        own_headers = (("content-type", fault.content_type), *headers)
        response = Response(fault.code, own_headers, fault.text)
    # 204 and 304 have no body (RFC 9110, 6.4.1).
    return replace(response, body=b"") if fault.code in (204, 304) else response


def _http_date(seconds_ahead: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds_ahead)
    return format_datetime(moment, usegmt=True)
