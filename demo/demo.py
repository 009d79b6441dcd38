"""Demo: sandbox, tap, Meltano and DuckDB on this machine, in two runs.

Meltano's own log goes to a file; with the variable VERBOSE it is shown.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
from picture import picture

from tap_audit_events.sandbox import Service, generate, serve

PROJECT = Path(__file__).resolve().parent.parent
OUTPUT = PROJECT / "demo" / "output"
DATABASE = OUTPUT / "warehouse.duckdb"
LOG = OUTPUT / "meltano.log"
PICTURE = OUTPUT / "events.svg"
LINES_OF_A_FAILURE = 20
COMMAND = ("meltano", "run", "tap-audit-events", "target-duckdb")

BY_ACTION_TYPE_AND_DAY = """
    PIVOT (
        SELECT action->>'type' AS action_type, strftime(occurredat, '%m-%d') AS day
        FROM audit_events
        WHERE occurredat > (SELECT max(occurredat)::date - INTERVAL 4 DAY FROM audit_events)
          AND (action->>'type') IN ('file_download', 'user_invite', 'user_sign_in')
    ) ON day USING count(*) GROUP BY action_type ORDER BY action_type
"""
BY_DAY_AND_ACTION_TYPE = """
    SELECT occurredat::date, action->>'type', count(*) FROM audit_events GROUP BY ALL
"""
NEWEST = """
    SELECT occurredat, action->>'type', coalesce(actor->>'name', actor->>'type')
    FROM audit_events ORDER BY occurredat DESC, id DESC LIMIT 1
"""


def main() -> None:
    """Run the demo from a clean start; exits with 1 if not exactly the events arrived."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    now = datetime.now(UTC)
    service = Service()
    with serve(service) as server:
        first = generate(20_000, days=14, seed=4, until=now - timedelta(hours=1))
        service.add(first)
        say(f"1. A sandbox of the service at {server.base_url} holds {len(first):,} events.")

        say("2. The tap reads them, and the loader writes them into a DuckDB file:")
        run_pipeline(service, server.base_url)
        show_table()
        show_newest()
        check(arrived(), ids(first), "the file", "the service holds")

        second = generate(137, days=1 / 25, seed=20, until=now)
        service.add(second)
        say(f"3. Meanwhile {len(second)} more events have appeared. The same command again:")
        loaded_before = newest_load()
        run_pipeline(service, server.base_url)
        show_newest()
        check(arrived(loaded_before), ids(second), "this run", "are new")
        check(arrived(), ids(first + second), "the file", "the service holds")
    draw()
    say_what_is_left()


def say(text: str) -> None:
    print(f"\n{text}", flush=True)


def ids(events: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(event["id"] for event in events)


def run_pipeline(service: Service, base_url: str) -> None:
    """Run Meltano against the service; its state and the DuckDB file are in the demo's folder."""
    print(f"   $ {' '.join(COMMAND)}", flush=True)
    requests_before = len(service.requests)
    variables = environment(service, base_url)
    with LOG.open("ab") as file:
        log = None if os.environ.get("VERBOSE") else file
        finished = subprocess.run(
            COMMAND, cwd=PROJECT, env=variables, stdout=log, stderr=log, check=False
        )
    if finished.returncode:
        shown = LOG.read_text(errors="replace").splitlines()[-LINES_OF_A_FAILURE:]
        sys.exit("\n".join([*shown, "", f"The pipeline failed. Its whole log: {LOG}"]))
    print(f"   Requests that the tap sent: {len(service.requests) - requests_before}", flush=True)


def environment(service: Service, base_url: str) -> dict[str, str]:
    """The variables that a user of the real service would set, and the folders of this demo."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TAP_AUDIT_EVENTS_", "TARGET_DUCKDB_"))
    }
    return inherited | {
        "TAP_AUDIT_EVENTS_BASE_URL": base_url,
        "TAP_AUDIT_EVENTS_ORGANIZATION_ID": service.organization_id,
        "TAP_AUDIT_EVENTS_ACCESS_TOKEN": service.access_token,
        "TARGET_DUCKDB_FILEPATH": str(DATABASE),
        "MELTANO_DATABASE_URI": f"sqlite:///{OUTPUT}/meltano.db",
        "MELTANO_STATE_BACKEND_URI": f"file://{OUTPUT}/state",
    }


def query(sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(DATABASE), read_only=True) as connection:
        return connection.execute(sql, parameters).fetchall()


def show_table() -> None:
    """Print the events of the newest five days by action type and day."""
    with duckdb.connect(str(DATABASE), read_only=True) as connection:
        print(connection.sql(BY_ACTION_TYPE_AND_DAY), flush=True)


def show_newest() -> None:
    ((at, action_type, actor),) = query(NEWEST)
    print(f"   Newest event: {at:%Y-%m-%d %H:%M:%S} UTC, {action_type} by {actor}", flush=True)


def newest_load() -> str:
    """The time at which the newest row was written, which the loader stores in each row."""
    ((loaded_at,),) = query("SELECT max(_sdc_batched_at) FROM audit_events")
    return str(loaded_at)


def arrived(after: str = "-infinity") -> list[str]:
    """The ids of the rows written after that time."""
    sql = "SELECT id FROM audit_events WHERE _sdc_batched_at > ?::timestamp ORDER BY id"
    return [row[0] for row in query(sql, after)]


def check(found: list[str], expected: list[str], where: str, what: str) -> None:
    """Print the counts; exits with 1 if not exactly the expected events are there."""
    print(f"   Rows in {where}: {len(found):,}. Events that {what}: {len(expected):,}.", flush=True)
    if found != expected:
        missing, surplus = set(expected) - set(found), len(found) - len(set(found) & set(expected))
        sys.exit(f"   These differ: {len(missing)} events are missing, {surplus} are too many.")


def draw() -> None:
    """Draw the events of the loaded table."""
    PICTURE.write_text(picture(query(BY_DAY_AND_ACTION_TYPE)), encoding="utf-8")


def say_what_is_left() -> None:
    file = DATABASE.relative_to(PROJECT)
    say("Each event is there, once. This shows what is in the file:")
    look = f"import duckdb; c = duckdb.connect('{file}'); print(c.sql('FROM audit_events'))"
    print(f'   $ .venv/bin/python -c "{look}"')
    print(f"   Events per day and action type, as a picture: {PICTURE.relative_to(PROJECT)}")
    if not os.environ.get("VERBOSE"):
        print(f"   Meltano's log: {LOG.relative_to(PROJECT)} (make demo VERBOSE=1 shows it)")


if __name__ == "__main__":
    main()
