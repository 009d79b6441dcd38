"""What faults do to a page and to its response."""

from dataclasses import replace

from tap_audit_events.sandbox.faults import ActiveFaults, Fault
from tap_audit_events.sandbox.response import Response, error_response


def replacement(faults: ActiveFaults) -> Response | None:
    """The response that replaces the service's own, if a fault gives one."""
    for fault in faults.values():
        if fault.kind == "reset":
            return Response(0, reset=True)
        if fault.kind == "status":
            return _status(fault)
        if fault.kind == "body":
            return Response(200, (("content-type", fault.content_type),), fault.text or b"")
    return None


def page_size(faults: ActiveFaults, requested: int) -> int:
    """The largest number of events that the page may contain."""
    if "empty" in faults:
        return 0
    if "short" not in faults:
        return requested
    events = faults["short"].events
    return min(requested, requested // 2 if events is None else events)


def as_sent(faults: ActiveFaults, response: Response) -> Response:
    """The response, sent as the faults say: later or cut."""
    if "hang" in faults:
        seconds = response.wait_seconds + faults["hang"].seconds
        response = replace(response, wait_seconds=seconds)
    if "cut" in faults:
        sent = faults["cut"].sent_bytes
        half = len(response.body) // 2
        response = replace(response, cut_after=half if sent is None else sent)
    return response


def _status(fault: Fault) -> Response:
    given = (("retry-after", fault.retry_after), ("location", fault.location))
    headers = tuple((name, value) for name, value in given if value is not None)
    if fault.text is not None:
        return Response(fault.code, (("content-type", fault.content_type), *headers), fault.text)
    response = error_response(fault.code, fault.err_code, fault.msg, None, headers)
    # 204 and 304 have no body (RFC 9110, 6.4.1).
    return replace(response, body=b"") if fault.code in (204, 304) else response
