"""A run that fails reports an error of a kind that Airbyte knows, and no event is lost."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from tap_audit_events.errors.catalogue import CATALOGUE
from tap_audit_events.sandbox import Fault, Service
from tests.airbyte.conftest import Source
from tests.airbyte.source import MODULE, STREAM, Output, a_catalog
from tests.builders import an_event

EVENTS = [an_event(id=f"{n:02}", at=f"2024-05-06T08:00:{n:02}Z") for n in range(30)]
IDS = [event["id"] for event in EVENTS]

AFTER_A_PAGE: dict[str, tuple[Fault, str, str]] = {
    "the token is revoked": (Fault(kind="status", code=401, when="2-"), "AE-401", "config_error"),
    "rate limit": (
        Fault(kind="status", code=429, retry_after="0", when="2-"), "AE-429", "transient_error"),
    "a long wait": (
        Fault(kind="status", code=429, retry_after="3600", when="2-"),
        "AE-RETRY-AFTER", "transient_error"),
    "the service fails": (
        Fault(kind="status", code=500, retry_after="0", when="2-"), "AE-500", "transient_error"),
    "the cursor repeats": (
        Fault(kind="same-cursor", when="2-"), "AE-CURSOR-REPEATED", "system_error"),
    "a gateway refuses": (
        Fault(kind="status", code=403, text=b"<html>Blocked", retry_after="0", when="2-"),
        "AE-GATEWAY", "transient_error"),
    "a sign-in page": (
        Fault(kind="status", code=302, location="https://sign.in.example/", retry_after="0",
              when="2-"),
        "AE-REDIRECT", "transient_error"),
}  # fmt: skip


@pytest.mark.parametrize("case", AFTER_A_PAGE)
def test_an_error_ends_the_run_with_its_kind(case: str, service: Service, source: Source) -> None:
    """STATE covers the records that were written, and the next run delivers the others."""
    service.add(EVENTS)
    first, second = failed_and_next(*AFTER_A_PAGE[case], service, source)
    assert 0 < len(first.ids) < len(IDS)
    assert first.ids + second.ids == IDS
    (line,) = [each for each in first.infos if each.startswith("Ended early: ")]
    assert line.startswith(f"Ended early: {len(first.ids)} events delivered; ")


def failed_and_next(
    fault: Fault, code: str, kind: str, service: Service, source: Source, **more: Any
) -> tuple[Output, Output]:
    """A run that a fault ends with an error, and the run after it, without the fault."""
    outage = [fault]
    service.add_faults([replace(fault, only=lambda _: bool(outage))])
    first = source("read", page_size=10, max_retries=1, concurrency=1, **more)
    assert first.exit_code == 1
    first.check_states()
    assert first.statuses == ["STARTED", "RUNNING", "INCOMPLETE"]
    (failure,) = first.failures
    assert failure["message"].startswith(f"{code}: {CATALOGUE[code].summary}")
    assert failure["message"].endswith(CATALOGUE[code].next_step)
    assert failure["failure_type"] == kind
    assert failure["stream_descriptor"] == {"name": "audit_events"}
    outage.clear()
    return first, source("read", state=[first.state], **more).raise_for_exit_code()


WRONG_CATALOGS: dict[str, tuple[object, str]] = {
    "another stream": (a_catalog(stream=STREAM | {"name": "users"}), "names the stream 'users'"),
    "a namespace": (a_catalog(stream=STREAM | {"namespace": "x"}), "names the stream 'x.audit_eve"),
    "another sync mode": (a_catalog("cdc"), "asks for the sync mode 'cdc'"),
    "the stream twice": (
        {"streams": a_catalog()["streams"] * 2}, "has the stream audit_events more than once"),
    "no sync mode": ({"streams": [{"stream": STREAM}]}, "must look like"),
    "a Singer catalog": ({"streams": [{"tap_stream_id": "audit_events"}]}, "must look like"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_CATALOGS)
def test_a_catalog_that_cannot_be_used_is_an_error_of_the_configuration(
    case: str, source: Source
) -> None:
    catalog, problem = WRONG_CATALOGS[case]
    done = source("read", catalog=catalog)
    assert done.exit_code == 1
    (failure,) = done.failures
    assert failure["message"].startswith(f"AE-CATALOG: The catalog {problem}")
    assert failure["failure_type"] == "config_error"


def stream_state(value: object) -> dict[str, Any]:
    stream = {"stream_descriptor": {"name": "audit_events"}, "stream_state": value}
    return {"type": "STREAM", "stream": stream}


WRONG_STATES: dict[str, tuple[object, str]] = {
    "a legacy state": ({"type": "LEGACY", "data": {"x": 1}}, "is of the type LEGACY"),
    "a global state": ([{"type": "GLOBAL", "global": {}}], "is of the type GLOBAL"),
    "a message": (
        {"type": "STATE", "state": stream_state({})}, "must be a list of Airbyte's state messages"),
    "two": ([stream_state({}), stream_state({})], "has more than one entry for audit_events"),
    "a surrogate": ([stream_state({"ids_from": "\ud800"})], "contains half of a surrogate pair"),
    "a list inside": ([stream_state([1])], "has a stream_state of audit_events that is not an"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_STATES)
def test_a_state_that_cannot_be_used_is_an_error_of_the_configuration(
    case: str, source: Source
) -> None:
    """If it were considered empty, every event would be read again."""
    state, problem = WRONG_STATES[case]
    done = source("read", state=state)
    assert done.exit_code == 1
    assert done.records == []
    (failure,) = done.failures
    assert failure["message"].startswith(f"AE-STATE: The state {problem}")
    assert failure["failure_type"] == "config_error"


def test_a_stream_state_of_another_organization_is_refused(source: Source) -> None:
    other = "0b5e7f0c-53a4-4d2e-9b5a-1f2d3c4b5a69"
    done = source("read", state=[stream_state({"organization_id": other, "action_types": []})])
    assert done.exit_code == 1
    (failure,) = done.failures
    assert f"it belongs to the organization '{other}'" in failure["message"]
    assert failure["failure_type"] == "config_error"
    assert done.statuses == ["STARTED", "INCOMPLETE"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["read", "--config", "c.json"], "the following arguments are required: --catalog"),
    ],
)
def test_a_wrong_command_line_is_reported_by_a_message(arguments: list[str], problem: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", MODULE, *arguments], capture_output=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == b""
    (failure,) = Output(done.stdout, "", 1).failures
    assert problem in failure["message"]
    assert failure["failure_type"] == "config_error"


DEFECT = """
import sys, warnings
from tap_audit_events.airbyte import __main__, command_line

def spec(self):
    print("printed")
    warnings.warn("a warning")
    raise ZeroDivisionError("why")

command_line.Commands.spec = spec
sys.argv[1:] = ["spec"]
__main__.main()
"""


def test_a_defect_is_a_message() -> None:
    """Warnings become messages too, and prints go to stderr."""
    run = subprocess.run([sys.executable, "-c", DEFECT], capture_output=True, check=False)
    done = Output(run.stdout, run.stderr.decode(), run.returncode)
    assert done.exit_code == 1
    assert done.log == "printed\n"
    (failure,) = done.failures
    assert failure["message"].startswith(f"AE-DEFECT: {CATALOGUE['AE-DEFECT'].summary} (Zero")
    assert failure["failure_type"] == "system_error"
    assert "Traceback" in failure["stack_trace"]
    assert ["a warning" in warning for warning in done.warnings] == [True]
