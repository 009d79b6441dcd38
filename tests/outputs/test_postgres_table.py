"""`audit-events export` into a table of PostgreSQL, besides what `test_histories.py` shows."""

import json
import re
import signal
from dataclasses import replace
from uuid import uuid4

import pytest

from tap_audit_events.api.arrow import SCHEMA
from tap_audit_events.sandbox import Fault, Service, serve
from tap_audit_events.sandbox.several import SeveralServices
from tests.cli.command import Command
from tests.cli.exported import expected, history
from tests.cli.failing import SMALL_PAGES, refused
from tests.loaders.postgres_server import USER, PostgresServer
from tests.outputs.postgres_table import PostgresTable
from tests.running import settings_for

pytestmark = pytest.mark.loaders

EVENTS = history(120)
OLD, NEW = EVENTS[:50], EVENTS[50:]
WAIT = "status:code=429,retry-after=60@5"


@pytest.fixture
def output(postgres: PostgresServer, command: Command) -> PostgresTable:
    return PostgresTable(command, postgres)


def test_the_table_is_what_verify_finds(output: PostgresTable, service: Service) -> None:
    output.query("CREATE SCHEMA raw")
    service.add(EVENTS)
    output.export("--table", "raw.audit_events").raise_for_exit_code()
    against = ("verify", "--against", output.url(), "--table", "raw.audit_events")

    output.command(*against).raise_for_exit_code()

    output.query("DELETE FROM raw.audit_events WHERE id = '00007'")
    assert output.command(*against).error.startswith("AE-DIFFERENT: ")


def test_organizations_have_a_state_each(output: PostgresTable, service: Service) -> None:
    """An organization can be added later; ids are unique only within an organization."""
    service.add(OLD)
    output.export().raise_for_exit_code()
    service.add(NEW)
    other = Service(organization_id=str(uuid4()), access_token=service.access_token)
    other.add(OLD)
    ids = [each.organization_id for each in (service, other)]

    with serve(SeveralServices([service, other])) as server:
        settings = settings_for(service, server.base_url)
        del settings["organization_id"]
        settings["organizations"] = json.dumps([{"organization_id": each} for each in ids])
        both = replace(output.command, settings=settings)
        both(*output.arguments).raise_for_exit_code()

    rows = output.query("SELECT organization_id, count(*) FROM audit_events GROUP BY 1")
    assert sorted(rows) == sorted([f"{ids[0]}\t{len(EVENTS)}", f"{ids[1]}\t{len(OLD)}"])
    assert output.query("SELECT count(*) FROM audit_events_state") == ["2"]


def test_a_server_that_goes_away_loses_nothing(output: PostgresTable, service: Service) -> None:
    service.add(EVENTS)
    service.add_faults([Fault.parse(WAIT)])

    with output.command.started(*output.arguments, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        output.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'audit-events' AND datname = current_database()"
        )
        run.send_signal(signal.SIGTERM)
        log = run.stderr.read().decode()
        assert run.wait(60) == 1

    assert log.startswith("AE-EXPORT: ")
    assert "Traceback" not in log
    output.export().raise_for_exit_code()
    assert output.events() == expected(EVENTS)


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
def test_a_table_that_does_not_fit_is_refused(
    sql: str, problem: str, output: PostgresTable, service: Service
) -> None:
    service.add(OLD)
    output.query(sql)

    done = output.export()

    assert done.error.startswith("AE-EXPORT: The table 'public.audit_events' ")
    assert problem in done.error
    assert output.query("SELECT count(*) FROM audit_events") == ["0"]


def test_a_table_may_have_more_columns_and_rows(output: PostgresTable, service: Service) -> None:
    """Rows without a state, as of a table that was restored or filled by hand, are not repeated."""
    output.query(
        f"{FITTING}, loaded_at timestamptz NOT NULL DEFAULT now(), note text,"
        " PRIMARY KEY (organization_id, id))"
    )
    service.add(EVENTS)
    output.export().raise_for_exit_code()
    output.query("DELETE FROM audit_events_state; DELETE FROM audit_events WHERE id < '00020'")

    output.export().raise_for_exit_code()

    assert output.events() == expected(EVENTS)


def test_an_older_state_repeats_no_event(output: PostgresTable, service: Service) -> None:
    """As after the state alone was restored."""
    service.add(OLD)
    output.export().raise_for_exit_code()
    (state,) = output.query("SELECT state FROM audit_events_state")
    service.add(NEW)
    output.export().raise_for_exit_code()
    output.query(f"UPDATE audit_events_state SET state = '{state}'")  # noqa: S608 - our own

    output.export().raise_for_exit_code()

    assert output.events() == expected(EVENTS)


def test_the_service_may_make_a_run_wait_longer_than_a_statement_may_last(
    output: PostgresTable, service: Service
) -> None:
    output.query(f"ALTER DATABASE {output.database} SET statement_timeout = '2s'")
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=429,retry-after=3@5")])

    output.export(**SMALL_PAGES).raise_for_exit_code()

    assert output.events() == expected(EVENTS)


def test_a_table_that_was_dropped_begins_with_what_is_new(
    output: PostgresTable, service: Service
) -> None:
    service.add(OLD)
    output.export().raise_for_exit_code()
    output.query("DROP TABLE audit_events")
    service.add(NEW)

    done = output.export().raise_for_exit_code()

    assert "has been removed since the last export" in "".join(done.warnings)
    assert output.events() == expected(NEW)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://postgres@127.0.0.1:{port}/nothing", 'database "nothing" does not exist'),
        ("postgresql://127.0.0.1:1/x", "Connection refused"),
    ],
)
def test_a_database_that_cannot_be_reached_is_one_line(
    url: str, said: str, output: PostgresTable
) -> None:
    error = output.command("export", "--to", url.format(port=output.server.port)).error

    assert error.startswith("AE-EXPORT: ")
    assert said in error
    assert "check the host, the database and the user in the URL" in error


def test_a_missing_schema_or_right_is_one_line(output: PostgresTable) -> None:
    reader, password = f"reader_{output.database}", "password-of-reader"
    output.query(f"CREATE ROLE {reader} LOGIN PASSWORD '{password}'")
    place = f"127.0.0.1:{output.server.port}/{output.database}"

    no_schema = output.export("--table", "nothing.audit_events").error
    no_right = output.command("export", "--to", f"postgres://{reader}:{password}@{place}").error

    assert 'schema "nothing" does not exist' in no_schema
    assert "create the schema" in no_schema
    assert "permission denied" in no_right
    assert "grant the right" in no_right
    assert password not in no_right


@pytest.mark.parametrize("password", ["wrong-password", "wr%40ng/password", "a@b"])
def test_a_wrong_password_is_not_shown(password: str, output: PostgresTable) -> None:
    """Neither one that the server refuses, nor one that would make another URL."""
    command = replace(output.command, secrets=(password, "password-of-the-environment"))
    to = output.url(password)

    done = command("export", "--to", to, PGPASSWORD="password-of-the-environment")

    refused(done)


def test_the_files_of_passwords_and_of_services_are_read(
    output: PostgresTable, service: Service
) -> None:
    passwords, services = (output.command.folder / name for name in (".pgpass", "services"))
    passwords.write_text(f"*:*:*:*:{output.server.password}\n")
    passwords.chmod(0o600)
    services.write_text(
        f"[warehouse]\nhost=127.0.0.1\nport={output.server.port}\nuser={USER}\n"
        f"dbname={output.database}\npassword={output.server.password}\n"
    )
    command = replace(output.command, environment={"PGSERVICEFILE": str(services)})
    service.add(OLD)
    command(*output.arguments).raise_for_exit_code()
    passwords.unlink()
    service.add(NEW)

    command("export", "--to", "postgresql://", PGSERVICE="warehouse").raise_for_exit_code()
    unknown = command("export", "--to", "postgresql:///?service=unknown").error

    assert output.events() == expected(EVENTS)
    assert 'definition of service "unknown" not found' in unknown
    assert "the service file" in unknown


def test_a_read_only_database_is_one_line(output: PostgresTable, service: Service) -> None:
    """As a standby server is. The next run continues once it can be written."""
    service.add(OLD)
    output.export().raise_for_exit_code()
    service.add(NEW)
    output.query(f"ALTER DATABASE {output.database} SET default_transaction_read_only = on")

    error = output.export().error

    assert "in a read-only transaction': connect to the primary server" in error
    output.query(
        "SET default_transaction_read_only = off;"
        f" ALTER DATABASE {output.database} RESET default_transaction_read_only"
    )
    output.export().raise_for_exit_code()
    assert output.events() == expected(EVENTS)


def test_a_state_file_and_a_table_of_a_file_are_refused(output: PostgresTable) -> None:
    assert "--state is for files" in output.export("--state", "s.json").error
    assert "--table names a" in output.command("export", "--to", "a.jsonl", "--table", "x").error


def test_json_that_the_database_refuses_is_kept_as_text(
    output: PostgresTable, service: Service
) -> None:
    """A number is beyond the range of `jsonb`; the other events are as usual."""
    texts = [json.dumps(event) for event in OLD]
    details = '{"n": 1e200000}'
    texts[7] = re.sub(r'"details": \{"fields": \{.*?\}\}', f'"details": {details}', texts[7])
    texts[7] = texts[7].replace('"entity":', '"new": [1.50], "entity":')
    service.add_raw(text.encode() for text in texts)

    output.export().raise_for_exit_code()

    rows = output.query(
        "SELECT id, action_details, other_fields, refused_json FROM audit_events"
        " WHERE refused_json IS NOT NULL"
    )
    text = f'{{"action_details":{details},"other_fields":{{"new":[1.50]}}}}'
    assert [row.split("\t") for row in rows] == [[OLD[7]["id"], "", "", text]]
    count = output.query("SELECT count(*) FROM audit_events WHERE action_details IS NOT NULL")
    assert count == [str(len(OLD) - 1)]
