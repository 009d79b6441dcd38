"""`examples/dagster_project`, run by Dagster's own engine, exports each event once."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Service, serve
from tests.builders import an_event
from tests.examples.dagster_runs import Instance

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(1500)]

FIRST_DAY = date(2026, 1, 1)
DAYS = [(FIRST_DAY + timedelta(days=number)).isoformat() for number in range(30)]
OTHER_ID = "0b9e8a54-3a0c-4a52-8f4e-5d1f0c2b7a66"


@pytest.fixture
def services() -> dict[str, Service]:
    """Two organizations, without events."""
    return {"research": Service(), "sales": Service(organization_id=OTHER_ID)}


@pytest.fixture
def instance(services: dict[str, Service], tmp_path: Path) -> Iterator[Instance]:
    with ExitStack() as stack:
        servers = {name: stack.enter_context(serve(service)) for name, service in services.items()}
        urls = {name: server.base_url for name, server in servers.items()}
        yield Instance(tmp_path, services, urls, FIRST_DAY.isoformat())
    for service in services.values():
        assert service.violations == []


def test_a_backfill_by_the_command_is_run_by_the_daemon(
    services: dict[str, Service], instance: Instance
) -> None:
    """The daemon uses the queue, launcher and pool of `dagster.yaml`, and `workspace.yaml`."""
    for name, service in services.items():
        service.add([an_event(f"{name} 1", "2026-01-01T08:00:00Z")])
    keys = [f"{DAYS[0]}|{name}" for name in services]
    options = ["-w", "workspace.yaml", "-j", "export_days", "--partitions", ",".join(keys)]
    instance.run("-m", "dagster", "job", "backfill", *options, "--noprompt")
    with instance.starting("-m", "dagster._daemon", "run", "-w", "workspace.yaml"):
        runs = instance.drive("2")
    assert {key: (run["status"], run["rows"], run["checks"]) for key, run in runs.items()} == {
        key: ("SUCCESS", [1], [True]) for key in keys
    }
    for name in services:
        assert instance.column(name, DAYS[0], "id") == [f"{name} 1"]
    instance.check_discreet()


BOUNDS = {
    "2026-01-01T23:59:59.9999999999999999999999Z": 0,
    "2026-01-01T23:59:59.999999999Z": 0,
    "2026-01-02T00:00:00Z": 1,
    "2026-01-02T00:00:00.000000001Z": 1,
    "2026-01-02T02:00:00+02:00": 1,
    "2026-01-02T23:59:59.5Z": 1,
    "2026-01-03T00:00:00.000Z": 2,
}
"""Times around midnight, each with the number of its day."""

SCRIPT = Path(__file__).with_name("dagster_checks.py")


def test_days_neither_overlap_nor_leave_a_gap(
    services: dict[str, Service], instance: Instance
) -> None:
    """At any precision of its time, an event is in the file of its own day."""
    service = services["research"]
    service.add([an_event(f"event-{n}", at) for n, at in enumerate(BOUNDS)])
    found = json.loads(
        instance.run(SCRIPT, "materialize", *(f"{day}|research" for day in DAYS[:3]))
    )
    assert [run["success"] for run in found] == [True] * 3
    for number, day in enumerate(DAYS[:3]):
        expected = [f"event-{n}" for n, each in enumerate(BOUNDS.values()) if each == number]
        assert sorted(instance.column("research", day, "id")) == expected


def test_a_second_export_of_a_day_replaces_its_file(
    services: dict[str, Service], instance: Instance
) -> None:
    """A late event fails the check; the next export of the day has it, and each event once."""
    service, key = services["research"], f"{DAYS[0]}|research"
    service.add([an_event("event-1", "2026-01-01T08:00:00Z")])
    first = json.loads(instance.run(SCRIPT, "materialize", key))
    service.add([an_event("late", "2026-01-01T07:00:00Z")])
    checked = json.loads(instance.run(SCRIPT, "check", key))
    second = json.loads(instance.run(SCRIPT, "materialize", key))
    assert [run["checks"] for run in (*first, *checked, *second)] == [[True], [False], [True]]
    assert instance.column("research", DAYS[0], "id") == ["late", "event-1"]
    assert [each.name for each in instance.path("research", DAYS[0]).parent.iterdir()] == [
        "audit_events.parquet"
    ]


@pytest.mark.parametrize(
    ("fault", "retried", "code"),
    [
        ("status:code=503@*", True, "AE-500"),
        ("status:code=429,retry-after=3600@*", True, "AE-RETRY-AFTER"),
        ("expire@*", True, "AE-CURSOR-REFUSED"),
        ("status:code=403@*", False, "AE-403"),
        ("status:code=401@*", False, "AE-401"),
        ("body:text=%7B%22auditEvents%22%3A7%7D@*", False, "AE-ENVELOPE"),
    ],
)
def test_errors_become_retries_or_failures(
    services: dict[str, Service], instance: Instance, fault: str, retried: bool, code: str
) -> None:
    """An error that may pass is retried, but not one that somebody has to fix."""
    service = services["research"]
    service.add(an_event(f"event-{n}", "2026-01-01T08:00:00Z") for n in range(1001))
    service.add_faults([fault])
    (error,) = json.loads(instance.run(SCRIPT, "error", "research"))
    assert error["retried"] is retried
    assert code in error["message"]
    if retried:
        assert error["seconds"] >= (3600 if "429" in fault else 15)
    assert not list(instance.folder.rglob("*.part*"))
    assert not list(instance.folder.rglob("*.parquet"))


def test_the_schedule_exports_today_and_for_some_hours_yesterday(instance: Instance) -> None:
    """Days are in UTC. In the first two hours of a day, the day before is exported too."""
    ticks = ["2026-01-03T00:10:00Z", "2026-01-03T01:59:00Z", "2026-01-03T02:10:00Z"]
    both = [f"{day}|{name}" for day in DAYS[1:3] for name in ("research", "sales")]
    assert json.loads(instance.run(SCRIPT, "schedule", *ticks)) == [both, both, both[2:]]
