"""Each error of the catalogue, as the command line shows it."""

import json
import re
import socket
import subprocess
import sys
from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.builders import TOO_DEEP, an_event
from tests.conftest import Sync
from tests.running import Run, run

SCOPE = "organization:audit_events_read"
THREE_EVENTS = [an_event(id=str(n), at=f"2024-05-06T07:08:0{n}Z") for n in range(3)]


def only_error(done: Run) -> str:
    assert done.exit_code == 1, done.log
    assert "Traceback" not in done.log
    (line,) = done.errors
    return line


@pytest.mark.parametrize(
    ("broken", "arguments"),
    [("TapAuditEvents._validate_config", []), ("TapAuditEvents.run_discovery", ["--discover"])],
)
def test_a_defect_has_a_code_before_its_traceback(broken: str, arguments: list[str]) -> None:
    """An unexpected error has a code to look up, in a sync as well as with `--discover`."""
    code = f"tap.{broken} = None; tap.TapAuditEvents.cli({arguments})"
    command = [sys.executable, "-c", f"from tap_audit_events.singer import tap; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    log, traceback, _ = done.stderr.partition("Traceback (most recent call last):\n")
    assert traceback
    assert " | AE-DEFECT: The tap failed unexpectedly (TypeError" in log.splitlines()[-1]


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (400, "Compare start_date, end_date, action_types and page_size"),
        (401, f"Set a valid personal access token with the scope {SCOPE}"),
        (403, "must be an administrator of the organization"),
        (403, SCOPE),
        (404, "Check base_url"),
        (418, "Check base_url"),
    ],
)
def test_a_refusal_says_what_the_service_said_and_what_to_do(
    code: int, advice: str, service: Service, sync: Sync
) -> None:
    """The request is not retried; the error names errCode, msg, vars and the window."""
    service.add_faults([Fault(kind="status", code=code, err_code="noEntry", msg="not for you")])
    line = only_error(sync(start_date="2026-01-01T00:00:00Z", end_date="2026-01-02T00:00:00Z"))
    assert line.startswith(f"AE-{code}: " if code != 418 else "AE-STATUS: ")
    assert line.count(f"status {code}") == 1
    assert "errCode 'noEntry', msg 'not for you', vars 'null'" in line
    assert "in the window from 2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z" in line
    assert advice in line
    assert len(service.requests) == 1


@pytest.mark.parametrize("code", [300, 301, 302, 303, 304, 307, 308])
def test_a_redirect_is_not_followed(code: int, service: Service, sync: Sync) -> None:
    """The token is sent to no other URL; the error names the URL, which may be a sign-in page."""
    service.add_faults([Fault(kind="status", code=code, location="https://elsewhere.example/x")])
    line = only_error(sync(max_retries=0))
    assert line.startswith("AE-REDIRECT: ")
    assert f"status {code} to 'https://elsewhere.example/x'" in line
    assert "set base_url to the part of the new URL before /v1/organizations" in line
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="status", code=429, when="2"),
        Fault(kind="status", code=429, retry_after="1", when="2"),
        Fault(kind="status", code=500, when="2-3"),
        Fault(kind="status", code=503, when="2"),
        Fault(kind="status", code=408, when="2"),
        Fault(kind="reset", when="2-3"),  # a single reset could be that of an idle connection
        Fault(kind="cut", when="2"),
        Fault(kind="hang", seconds=30, when="2"),
        Fault(kind="body", text=b"<html>sign in</html>", when="2"),
        Fault(kind="body", text=b'{"errCode": "busy", "msg": "", "vars": null}', when="2"),
        Fault(kind="status", code=401, text=b"<html>sign in</html>", when="2"),
        Fault(kind="status", code=403, text=b"<html>blocked</html>", when="2"),
        Fault(kind="status", code=403, retry_after="0", when="2"),
        Fault(kind="status", code=404, text=b'{"message": "not here"}', when="2"),
        Fault(kind="status", code=400, text=b"", when="2"),
        Fault(kind="status", code=302, location="https://sign.in.example/", when="2"),
        Fault(kind="status", code=204, when="2"),
        pytest.param(
            Fault(kind="body", text=b'{"auditEvents": [', when="2"), marks=pytest.mark.long
        ),
        pytest.param(Fault(kind="body", text=b"", when="2"), marks=pytest.mark.long),
    ],
)
def test_a_temporary_failure_is_retried(fault: Fault, service: Service, sync: Sync) -> None:
    """After the retry, each event has been delivered once."""
    service.add(THREE_EVENTS)
    service.add_faults([fault])
    done = sync(page_size=1, request_timeout_seconds=1, concurrency=1).raise_for_exit_code()
    assert done.ids == ["0", "1", "2"]
    assert any(re.match(r"Retry \d of \d in .+: AE-[0-9A-Z-]+: ", line) for line in done.warnings)
    assert service.requests[1].params == service.requests[2].params


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (Fault(kind="status", code=429), "AE-429: The token's owner sends more requests"),
        (Fault(kind="status", code=500), "AE-500: The service failed (status 500"),
        (Fault(kind="status", code=502), "AE-500: The service failed (status 502"),
        (Fault(kind="reset"), "AE-CONNECTION: The connection to the service failed"),
        (Fault(kind="cut"), "AE-CUT: The response is incomplete"),
        (Fault(kind="hang", seconds=30), "AE-TIMEOUT: The service did not respond in time"),
        (Fault(kind="body", text=b'{"auditEvents": ['), "AE-NO-JSON: The response is not JSON"),
        (Fault(kind="body", text=b"<title>Sign in</title>"), "AE-GATEWAY: Something other than"),
        (Fault(kind="body", text=b"[]"), "AE-GATEWAY: Something other than"),
        (Fault(kind="status", code=403, text=b"<html>"), "AE-GATEWAY: Something other than"),
        (Fault(kind="status", code=302, location="https://a.example/"), "AE-REDIRECT: "),
    ],
)
def test_the_number_of_retries_is_limited(
    fault: Fault, problem: str, service: Service, sync: Sync
) -> None:
    """After `max_retries` retries, the run ends with the last error."""
    service.add_faults([fault])
    line = only_error(sync(max_retries=1, request_timeout_seconds=1))
    assert line.startswith(problem)
    assert "gave up after 1 retry" in line
    assert len(service.requests) == 2


def test_a_retry_after_that_is_too_long_ends_the_run(service: Service, sync: Sync) -> None:
    """A run does not wait for hours; STATE covers the events that were read before."""
    service.add(THREE_EVENTS)
    service.add_faults([Fault(kind="status", code=429, retry_after="901", when="2")])
    done = sync(page_size=2, concurrency=1)
    line = only_error(done)
    assert line.startswith("AE-RETRY-AFTER: ")
    assert "Retry-After of 901 seconds" in line
    assert "Run it again after that time" in line
    assert "in the window up to 2" in line
    assert done.ids == ["0", "1"]
    assert sync(page_size=2, state=done.state).ids == ["2"]


@pytest.mark.parametrize(
    ("body", "code", "problem"),
    [
        (
            b'{"auditEvents": 7}',
            "AE-ENVELOPE",
            "not a page of audit events ('Expected",
        ),
        (b'{"auditEvents": [], "nextCursor": 7}', "AE-ENVELOPE", "`$.nextCursor`"),
        (
            b'{"auditEvents": [], "nextCursor": "\\ud800"}',
            "AE-ENVELOPE",
            "nextCursor is not Unicode text",
        ),
        (
            b'{"auditEvents": [{"id": "x"}]}',
            "AE-EVENT",
            "event 1 of the page: Object missing required field",
        ),
        (
            b'{"auditEvents": [%b]}' % TOO_DEEP,
            "AE-NESTING",
            "nested too deeply",
        ),
    ],
)
def test_a_response_outside_the_interface_ends_the_run(
    body: bytes, code: str, problem: str, service: Service, sync: Sync
) -> None:
    """The request is not retried, as the service would send the same response again."""
    service.add_faults([Fault(kind="body", text=body)])
    line = only_error(sync())
    assert line.startswith(f"{code}: ")
    assert problem in line
    assert len(service.requests) == 1


def test_events_before_an_event_that_cannot_be_used_are_delivered(
    service: Service, sync: Sync
) -> None:
    """The bad event ends the run; the error shows the event and its position in the page."""
    bad = an_event(id="bad", at="2024-05-06T07:08:09Z") | {"occurredAt": "today"}
    body = {"auditEvents": [*THREE_EVENTS, bad, an_event(id="never")]}
    service.add_faults([Fault(kind="body", text=json.dumps(body).encode(), when="1")])
    done = sync()
    line = only_error(done)
    assert line.startswith("AE-EVENT: ")
    assert "event 4 of the page: occurredAt is not an RFC 3339 date-time" in line
    assert '"id": "bad"' in line
    assert done.ids == ["0", "1", "2"]
    assert done.bookmark == "2024-05-06T07:08:02Z"


@pytest.mark.parametrize("value", [b"NaN", b'"\n"', b'"\xff"'])
def test_a_value_that_is_not_json_is_named_with_its_event(
    value: bytes, service: Service, sync: Sync
) -> None:
    """The events before it are delivered, and the request is not retried."""
    *good, bad = [json.dumps(event).encode() for event in THREE_EVENTS]
    bad = bad.replace(b'"Research"', value)
    body = b'{"auditEvents": [%b], "nextCursor": "more"}' % b",".join([*good, bad, good[0]])
    service.add_faults([Fault(kind="body", text=body)])
    done = sync()
    line = only_error(done)
    assert line.startswith("AE-EVENT: ")
    assert "event 3 of the page is not JSON: " in line
    assert '"id": "2"' in line
    assert (done.ids, done.bookmark) == (["0", "1"], "2024-05-06T07:08:01Z")
    assert len(service.requests) == 1


def test_an_event_that_cannot_be_used_is_excluded_by_its_whole_second(
    service: Service, sync: Sync
) -> None:
    """Requests cover whole seconds, so the error advises to exclude the event's whole second."""
    bad = an_event(id="bad", at="2024-05-06T07:08:09.5Z") | {"id": ""}
    service.add([*THREE_EVENTS, bad, an_event(id="next", at="2024-05-06T07:08:10Z")])
    for start, end in (("09.6", "11"), ("00", "09.4")):
        done = sync(start_date=f"2024-05-06T07:08:{start}Z", end_date=f"2024-05-06T07:08:{end}Z")
        assert "or exclude the whole second of its time with start_date" in only_error(done)
    assert sync(start_date="2024-05-06T07:08:10Z").raise_for_exit_code().ids == ["next"]
    assert sync(end_date="2024-05-06T07:08:08Z").raise_for_exit_code().ids == ["0", "1", "2"]


@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize("empty", [True, False])
def test_a_repeated_cursor_is_an_error(
    back: int, empty: bool, service: Service, sync: Sync
) -> None:
    """A cycle of cursors, such as A, B, A, would never end; its pages may be empty."""
    service.add([an_event(id=str(n), at=f"2024-05-06T07:08:{n:02}Z") for n in range(20)])
    service.add_faults([Fault(kind="same-cursor", back=back, when="4-")])
    if empty:
        service.add_faults([Fault(kind="empty", when="3-")])
    done = sync(page_size=1, concurrency=1)
    assert only_error(done).startswith("AE-CURSOR-REPEATED: ")
    assert len(service.requests) < 10
    assert done.ids[:2] == ["0", "1"]
    assert len(set(done.ids)) == len(done.ids)


def test_a_url_where_nothing_listens_is_an_error() -> None:
    """The error shows the reason that the operating system gives."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = run(
        {
            "base_url": f"http://127.0.0.1:{port}",
            "organization_id": "6f1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47",
            "access_token": "x_pat_y",
            "max_retries": 0,
        }
    )
    assert only_error(done).startswith("AE-CONNECTION: ")
    assert f"host='127.0.0.1', port={port}: " in only_error(done)
    assert "refused" in only_error(done)
    assert "_Connection" not in only_error(done)


def test_a_certificate_that_cannot_be_verified_ends_the_run(
    untrusted_address: str, settings: dict[str, Any]
) -> None:
    """The error names REQUESTS_CA_BUNDLE: a CA bundle is the only remedy."""
    line = only_error(run(settings | {"base_url": untrusted_address}))
    assert line.startswith("AE-CERTIFICATE: ")
    assert "REQUESTS_CA_BUNDLE" in line


def test_text_from_outside_stays_on_its_line(service: Service, sync: Sync) -> None:
    """No line break, terminal code or length of a message can forge a log line."""
    message = "all is well\n2026 | INFO | x | \x1b[2J\u202e" + "x" * 10_000
    service.add_faults([Fault(kind="status", code=403, msg=message)])
    line = only_error(sync())
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert len(line) < 1500
