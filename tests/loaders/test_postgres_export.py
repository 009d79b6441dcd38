"""`audit-events export` into a table of PostgreSQL: each event once, whatever happens."""

import json
import random
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from tap_audit_events.api.arrow import SCHEMA
from tap_audit_events.sandbox import Fault, Service, serve
from tap_audit_events.sandbox.several import SeveralServices
from tests.builders import an_event
from tests.cli.command import Done
from tests.cli.exported import HOSTILE, Event, expected, history, of_table, without_nulls
from tests.loaders.postgres import PostgresLoader
from tests.loaders.postgres_server import USER
from tests.loaders.proof import audit_events, python_of_proof, started, variables_of
from tests.running import settings_for

pytestmark = [pytest.mark.loaders, pytest.mark.usefixtures("servers")]

EVENTS = history(120)
OLD, NEW = EVENTS[:50], EVENTS[50:]
SMALL_PAGES = {"page_size": 10, "concurrency": 1}
WAIT = "status:code=429,retry-after=60@5"
NEXT = "the next export continues after them."
KILLS = 30

_TEXT_COLUMNS = ", ".join(
    f"CAST({name} AS text) AS {name}" if name in {"action_details", "other_fields"} else name
    for name in SCHEMA.names
)


@dataclass
class Warehouse:
    """A new database, and a service."""

    folder: Path
    service: Service
    settings: dict[str, Any]
    database: str = field(default_factory=lambda: f"audit_{uuid4().hex}")

    def query(self, sql: str) -> list[str]:
        return PostgresLoader.server.query(self.database, sql)

    def url(self, password: str = "") -> str:
        login = f"{USER}:{password}" if password else USER
        return f"postgresql://{login}@127.0.0.1:{PostgresLoader.server.port}/{self.database}"

    def arguments(self, *more: str) -> list[str]:
        return ["export", "--to", self.url(), *more]

    def export(self, *more: str, **settings: Any) -> Done:
        return self.run(*self.arguments(*more), **settings)

    def run(self, *arguments: str, **settings: Any) -> Done:
        """Run the command with the password in the environment, and check that it is not shown."""
        password = PostgresLoader.server.password
        given = self.settings | settings
        return audit_events(self.folder, given, *arguments, secret=password, PGPASSWORD=password)

    @contextmanager
    def started(self, **settings: Any) -> Iterator[subprocess.Popen[bytes]]:
        password = PostgresLoader.server.password
        given = self.settings | settings
        with started(self.folder, given, *self.arguments(), PGPASSWORD=password) as run:
            yield run

    @property
    def ids(self) -> list[str]:
        """The ids in the table, in their order."""
        if self.query("SELECT to_regclass('audit_events')") == [""]:
            return []
        return self.query("SELECT id FROM audit_events ORDER BY id")

    @property
    def events(self) -> list[Event]:
        """The events in the table, in the order of their times."""
        lines = self.query(
            f"SELECT to_jsonb(event) FROM (SELECT {_TEXT_COLUMNS} FROM audit_events) AS event"  # noqa: S608
            " ORDER BY rtrim(occurred_at_text, 'Z'), id"
        )
        rows = [json.loads(line) for line in lines]
        for row in rows:
            row["occurred_at"] = datetime.fromisoformat(row["occurred_at"])
        table = pa.Table.from_pylist(rows, SCHEMA)
        return list(map(without_nulls, of_table(table, self.folder / "table")))


@pytest.fixture
def warehouse(tmp_path: Path, service: Service) -> Iterator[Warehouse]:
    with serve(service) as server:
        settings = settings_for(service, server.base_url)
        created = Warehouse(tmp_path, service, settings)
        PostgresLoader.server.create_database(created.database)
        yield created
    assert service.violations == []


def test_each_run_adds_what_is_new(warehouse: Warehouse) -> None:
    """New events and those that appear late are added once; nothing is written if none are."""
    warehouse.service.add(OLD + HOSTILE)
    first = warehouse.export().raise_for_exit_code()
    assert first.log.startswith(f"Added to audit_events: {len(OLD + HOSTILE)} events")
    assert warehouse.events == expected(OLD + HOSTILE)

    assert warehouse.export().raise_for_exit_code().log.startswith("Nothing new for audit_events")

    newest = max(each["occurredAt"] for each in OLD + HOSTILE)
    late = an_event(id="late", at=newest)
    warehouse.service.add([late, *NEW])
    warehouse.export().raise_for_exit_code()
    assert warehouse.events == expected([*EVENTS, *HOSTILE, late])
    assert list(warehouse.folder.glob("*.json")) == []


def test_the_table_is_what_verify_finds(warehouse: Warehouse) -> None:
    warehouse.query("CREATE SCHEMA raw")
    warehouse.service.add(EVENTS)
    warehouse.export("--table", "raw.audit_events").raise_for_exit_code()
    against = ("verify", "--against", warehouse.url(), "--table", "raw.audit_events")

    warehouse.run(*against).raise_for_exit_code()

    warehouse.query("DELETE FROM raw.audit_events WHERE id = '00007'")
    assert warehouse.run(*against).error.startswith("AE-DIFFERENT: ")


def test_organizations_have_a_state_each(tmp_path: Path) -> None:
    """An organization can be added later; ids are unique only within an organization."""
    services = [Service(organization_id=str(uuid4())) for _ in range(2)]
    for each in services:
        each.add(OLD)
    with serve(SeveralServices(services)) as server:
        one, two = ({"organization_id": each.organization_id} for each in services)
        settings = settings_for(services[0], server.base_url)
        warehouse = Warehouse(tmp_path, services[0], settings)
        PostgresLoader.server.create_database(warehouse.database)
        warehouse.export().raise_for_exit_code()
        services[0].add(NEW)

        del settings["organization_id"]
        warehouse.export(organizations=json.dumps([one, two])).raise_for_exit_code()

    rows = warehouse.query("SELECT organization_id, count(*) FROM audit_events GROUP BY 1")
    assert sorted(rows) == sorted(
        [f"{one['organization_id']}\t{len(EVENTS)}", f"{two['organization_id']}\t{len(OLD)}"]
    )
    assert warehouse.query("SELECT count(*) FROM audit_events_state") == ["2"]


def test_an_error_in_the_middle_keeps_the_events_before_it(warehouse: Warehouse) -> None:
    warehouse.service.add(EVENTS)
    warehouse.service.add_faults([Fault.parse("status:code=403@5")])

    done = warehouse.export(**SMALL_PAGES)

    assert done.error.startswith("AE-403: ")
    assert done.error.endswith(f"The 40 events before that are in audit_events: {NEXT}")
    assert warehouse.events == expected(EVENTS[:40])
    warehouse.export().raise_for_exit_code()
    assert warehouse.events == expected(EVENTS)


def test_a_signal_in_the_middle_keeps_the_events_before_it(warehouse: Warehouse) -> None:
    warehouse.service.add(EVENTS)
    warehouse.service.add_faults([Fault.parse(WAIT)])

    with warehouse.started(**SMALL_PAGES) as run:
        log = signal_while_waiting(run)

    (count,) = map(int, re.findall(r"The (\d+) events before that are in audit_events", log))
    assert warehouse.events == expected(EVENTS[:count])
    warehouse.export().raise_for_exit_code()
    assert warehouse.events == expected(EVENTS)


def signal_while_waiting(run: "subprocess.Popen[bytes]") -> str:
    assert run.stderr is not None
    assert b"Retry 1 of 8" in run.stderr.readline()
    run.send_signal(signal.SIGTERM)
    log = run.stderr.read().decode()
    assert run.wait(60) == 128 + signal.SIGTERM, log
    return log


def test_of_two_exports_at_once_one_is_refused(warehouse: Warehouse) -> None:
    """The other one, which waits for the service, is not disturbed."""
    warehouse.service.add(EVENTS)
    warehouse.service.add_faults([Fault.parse(WAIT)])

    with warehouse.started(**SMALL_PAGES) as run:
        assert run.stderr is not None
        assert b"Retry 1 of 8" in run.stderr.readline()
        done = warehouse.export("--table", "public.audit_events")
        run.send_signal(signal.SIGTERM)
        run.wait(60)

    assert done.error.startswith("AE-BUSY: Another run is writing to the table")
    warehouse.export().raise_for_exit_code()
    assert warehouse.events == expected(EVENTS)


def test_a_server_that_goes_away_loses_nothing(warehouse: Warehouse) -> None:
    warehouse.service.add(EVENTS)
    warehouse.service.add_faults([Fault.parse(WAIT)])

    with warehouse.started(**SMALL_PAGES) as run:
        assert run.stderr is not None
        assert b"Retry 1 of 8" in run.stderr.readline()
        warehouse.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'audit-events' AND datname = current_database()"
        )
        run.send_signal(signal.SIGTERM)
        log = run.stderr.read().decode()
        assert run.wait(60) == 1

    assert log.startswith("AE-EXPORT: ")
    assert "Traceback" not in log
    warehouse.export().raise_for_exit_code()
    assert warehouse.events == expected(EVENTS)


COLUMNS = ", ".join(
    f"{name} {'timestamptz' if name == 'occurred_at' else 'text'}"
    for name in (*SCHEMA.names, "refused_json")
    if name not in {"action_details", "other_fields"}
)
FITTING = f"CREATE TABLE audit_events ({COLUMNS}, action_details jsonb, other_fields jsonb"


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("CREATE TABLE audit_events (id text PRIMARY KEY)", "there is no organization_id, "),
        (f"{FITTING})", "the primary key must be (organization_id, id)"),
        (f"{FITTING}, UNIQUE (organization_id, id), x int NOT NULL)", "'x' must have a default"),
        (
            f"{FITTING.replace('timestamptz', 'timestamp')}, UNIQUE (organization_id, id))",
            "occurred_at is timestamp without time zone, but must be timestamp with time zone",
        ),
    ],
)
def test_a_table_that_does_not_fit_is_refused(sql: str, problem: str, warehouse: Warehouse) -> None:
    warehouse.service.add(OLD)
    warehouse.query(sql)

    done = warehouse.export()

    assert done.error.startswith("AE-EXPORT: The table 'public.audit_events' ")
    assert problem in done.error
    assert warehouse.query("SELECT count(*) FROM audit_events") == ["0"]


def test_a_table_may_have_more_columns_and_rows(warehouse: Warehouse) -> None:
    """Rows without a state, as of a table that was restored or filled by hand, are not repeated."""
    warehouse.query(
        f"{FITTING}, loaded_at timestamptz NOT NULL DEFAULT now(), note text,"
        " PRIMARY KEY (organization_id, id))"
    )
    warehouse.service.add(EVENTS)
    warehouse.export().raise_for_exit_code()
    warehouse.query("DELETE FROM audit_events_state; DELETE FROM audit_events WHERE id < '00020'")

    warehouse.export().raise_for_exit_code()

    assert warehouse.events == expected(EVENTS)


def test_a_table_that_was_dropped_begins_with_what_is_new(warehouse: Warehouse) -> None:
    warehouse.service.add(OLD)
    warehouse.export().raise_for_exit_code()
    warehouse.query("DROP TABLE audit_events")
    warehouse.service.add(NEW)

    done = warehouse.export().raise_for_exit_code()

    assert "has been removed since the last export" in "".join(done.warnings)
    assert warehouse.events == expected(NEW)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://postgres@127.0.0.1:{port}/nothing", 'database "nothing" does not exist'),
        ("postgresql://127.0.0.1:1/x", "Connection refused"),
    ],
)
def test_a_database_that_cannot_be_reached_is_one_line(
    url: str, said: str, warehouse: Warehouse
) -> None:
    error = warehouse.run("export", "--to", url.format(port=PostgresLoader.server.port)).error

    assert error.startswith("AE-EXPORT: ")
    assert said in error
    assert "check the host, the database and the user in the URL" in error


def test_a_missing_schema_or_right_is_one_line(warehouse: Warehouse) -> None:
    reader, password = f"reader_{warehouse.database}", "password-of-reader"
    warehouse.query(f"CREATE ROLE {reader} LOGIN PASSWORD '{password}'")
    place = f"127.0.0.1:{PostgresLoader.server.port}/{warehouse.database}"

    no_schema = warehouse.export("--table", "nothing.audit_events").error
    no_right = warehouse.run("export", "--to", f"postgres://{reader}:{password}@{place}").error

    assert 'schema "nothing" does not exist' in no_schema
    assert "create the schema" in no_schema
    assert "permission denied" in no_right
    assert "grant the right" in no_right
    assert password not in no_right


@pytest.mark.parametrize("password", ["wrong-password", "wr%40ng/password", "a@b"])
def test_a_wrong_password_is_not_shown(password: str, warehouse: Warehouse) -> None:
    """Neither one that the server refuses, nor one that would make another URL."""
    done = audit_events(
        warehouse.folder,
        warehouse.settings,
        "export",
        "--to",
        warehouse.url(password),
        secret=password,
        PGPASSWORD="password-of-the-environment",
    )

    assert done.error.startswith("AE-EXPORT: ")
    assert "password-of-the-environment" not in done.log


def test_a_password_file_is_read(warehouse: Warehouse) -> None:
    file = warehouse.folder / "passwords"
    file.write_text(f"*:*:*:*:{PostgresLoader.server.password}\n")
    file.chmod(0o600)
    warehouse.service.add(OLD)

    done = audit_events(
        warehouse.folder, warehouse.settings, *warehouse.arguments(), PGPASSFILE=str(file)
    )

    done.raise_for_exit_code()
    assert warehouse.events == expected(OLD)


def test_a_state_file_and_a_table_of_a_file_are_refused(warehouse: Warehouse) -> None:
    assert "--state is for files" in warehouse.export("--state", "s.json").error
    assert "--table names a" in warehouse.run("export", "--to", "a.jsonl", "--table", "x").error


def test_json_that_the_database_refuses_is_kept_as_text(warehouse: Warehouse) -> None:
    """A number is beyond the range of `jsonb`; the other events are as usual."""
    texts = [json.dumps(event) for event in OLD]
    details = '{"n": 1e200000}'
    texts[7] = re.sub(r'"details": \{"fields": \{.*?\}\}', f'"details": {details}', texts[7])
    texts[7] = texts[7].replace('"entity":', '"new": [1.50], "entity":')
    warehouse.service.add_raw(text.encode() for text in texts)

    warehouse.export().raise_for_exit_code()

    rows = warehouse.query(
        "SELECT id, action_details, other_fields, refused_json FROM audit_events"
        " WHERE refused_json IS NOT NULL"
    )
    text = f'{{"action_details":{details},"other_fields":{{"new":[1.50]}}}}'
    assert [row.split("\t") for row in rows] == [[OLD[7]["id"], "", "", text]]
    count = warehouse.query("SELECT count(*) FROM audit_events WHERE action_details IS NOT NULL")
    assert count == [str(len(OLD) - 1)]


def test_exports_that_are_killed_at_any_moment_store_each_event_once(warehouse: Warehouse) -> None:
    """A run that ends before it is killed is followed by new events."""
    rng = random.Random(20261129)
    events: list[Event] = []
    exit_codes: Counter[int] = Counter()
    settings = warehouse.settings | {"page_size": 10}
    with subprocess.Popen(
        [python_of_proof(), "-m", "tests.loaders.exporting", *warehouse.arguments("-q")],
        cwd=warehouse.folder,
        env=variables_of(settings) | {"PGPASSWORD": PostgresLoader.server.password},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as runs:
        assert runs.stdin is not None
        assert runs.stdout is not None

        def run(seconds: float) -> int:
            print(seconds, file=runs.stdin, flush=True)
            exit_code = int(runs.stdout.readline())  # type: ignore[union-attr]
            assert exit_code in {0, -signal.SIGKILL}
            return exit_code

        while exit_codes[-signal.SIGKILL] < KILLS:
            if len(events) == len(warehouse.ids):
                new = history(1500, start=len(events))
                warehouse.service.add(new)
                events += new
            exit_codes[run(rng.uniform(0, 1))] += 1
        assert run(60) == 0
        runs.stdin.close()
    assert warehouse.ids == [each["id"] for each in events]
    print(f"{exit_codes[-signal.SIGKILL]} kills, {len(events)} events")  # noqa: T201
