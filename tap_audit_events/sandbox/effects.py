"""What faults do to a page, to an answer and to the connection."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from tap_audit_events.sandbox.answers import Answer, error_answer
from tap_audit_events.sandbox.faults import Fault


def answer_instead(faults: Sequence[Fault]) -> Answer | None:
    """The answer that takes the place of the service's own; None where no fault gives one."""
    for fault in faults:
        if fault.kind == "reset":
            return Answer(0, reset=True)
        if fault.kind == "status":
            return _status(fault)
        if fault.kind == "body":
            return Answer(200, (("content-type", fault.content_type),), fault.text)
    return None


def page_size(faults: Sequence[Fault], asked: int) -> int:
    """How many events a page may hold."""
    for fault in faults:
        if fault.kind == "empty":
            return 0
        if fault.kind == "short":
            return min(asked, asked // 2 if fault.events is None else fault.events)
    return asked


def pages_back(faults: Sequence[Fault]) -> int:
    """How many pages back the cursor that is given again comes from."""
    return max((fault.back for fault in faults if fault.kind == "same-cursor"), default=0)


def on_the_wire(faults: Sequence[Fault], answer: Answer) -> Answer:
    """The same answer, later or cut."""
    for fault in faults:
        if fault.kind == "hang":
            answer = replace(answer, wait_seconds=answer.wait_seconds + fault.seconds)
        if fault.kind == "cut":
            half = len(answer.body) // 2
            sent = half if fault.sent_bytes is None else fault.sent_bytes
            answer = replace(answer, cut_after=sent)
    return answer


def _status(fault: Fault) -> Answer:
    headers = []
    if fault.retry_after is not None:
        headers.append(("retry-after", fault.retry_after))
    if fault.retry_after_date is not None:
        headers.append(("retry-after", _http_date(fault.retry_after_date)))
    if fault.location is not None:
        headers.append(("location", fault.location))
    answer = error_answer(fault.code, fault.err_code, fault.msg, headers=tuple(headers))
    # 204 and 304 have no body (RFC 9110, 6.4.1).
    return replace(answer, body=b"") if fault.code in (204, 304) else answer


def _http_date(seconds_ahead: float) -> str:
    moment = datetime.now(UTC) + timedelta(seconds=seconds_ahead)
    return format_datetime(moment, usegmt=True)
