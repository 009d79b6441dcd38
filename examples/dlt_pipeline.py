#!/usr/bin/env python3
"""Loads audit events with dlt, incrementally, into DuckDB or PostgreSQL.

    pip install '.[arrow]' 'dlt[duckdb,postgres]'    # in a clone of the repository
    export TAP_AUDIT_EVENTS_BASE_URL=https://api.example.com
    export TAP_AUDIT_EVENTS_ORGANIZATION_ID=6f1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47
    export TAP_AUDIT_EVENTS_ACCESS_TOKEN=$(cat /run/secrets/audit-events-token)
    export DESTINATION__DUCKDB__CREDENTIALS=$PWD/events.duckdb
    python dlt_pipeline.py --destination duckdb --write-disposition merge

Instead of the first three variables, `.dlt/config.toml` and `.dlt/secrets.toml` can have the
settings, in the section `sources.audit_events`. Run the script again to load new events, even after
a run that failed. dlt resolves a relative path of the DuckDB file against the folder of the first
run.

Each event arrives once with either disposition, with one exception: if the process is killed after
the database has committed and before dlt has noted it, dlt loads the package again. `merge` then
replaces the events; `append` adds them twice.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import dlt
import pyarrow as pa
from dlt.pipeline.exceptions import PipelineStepFailed

from tap_audit_events import AuditEvents, AuditEventsError

NAME = "audit_events"
MAX_EVENTS = 500_000
"""About how many events a load package has. A run that fails has to read only these again."""


@dlt.source(name=NAME, section=NAME)
def audit_events(
    base_url: str = dlt.config.value,
    organization_id: str = dlt.config.value,
    access_token: dlt.TSecretStrValue = dlt.secrets.value,
    start_date: str | None = None,
    most_events: int = MAX_EVENTS,
) -> Any:
    """Read the new events of an organization, oldest first."""
    log = AuditEvents(
        base_url=base_url,
        organization_id=organization_id,
        access_token=access_token,
        start_date=start_date,
    )
    return dlt.resource(new_events(log, most_events), name=NAME, primary_key="id")


def new_events(log: AuditEvents, most_events: int) -> Iterator[pa.Table]:
    """Return the new events, as a table for each page.

    dlt loads the state together with the events. The state is set before the page is yielded,
    because dlt may end a resource at any yield, for example with `add_limit`.
    """
    state = dlt.current.resource_state(NAME)
    count = 0
    with closing(log.pages(state=state.get("run"))) as pages:
        for page in pages:
            state["run"] = page.state
            yield pa.Table.from_batches([page.arrow()])
            count += len(page)
            if count >= most_events:
                return


def finish_interrupted_load(pipeline: dlt.Pipeline) -> None:
    """Load the events that a killed run has extracted, and continue with the state of that package.

    dlt saves the package before its local state. After a kill in between, only the package has the
    new state.
    """
    pipeline.run()
    pipeline.sync_destination()


def load(pipeline: dlt.Pipeline, write_disposition: str, **settings: Any) -> int:
    """Load all events that are new, and return how many."""
    finish_interrupted_load(pipeline)
    most_events = settings.get("most_events", MAX_EVENTS)
    total = 0
    while True:
        pipeline.run(audit_events(**settings), write_disposition=write_disposition)
        count: int = pipeline.last_trace.last_normalize_info.row_counts.get(NAME, 0)
        total += count
        if count < max(most_events, 1):  # with 0, each package holds one page
            return total


def environment_settings() -> dict[str, str]:
    """Return the settings in the tap's variables; dlt finds the others in its configuration."""
    names = ("base_url", "organization_id", "access_token", "start_date")
    found = {name: os.environ.get(f"TAP_AUDIT_EVENTS_{name.upper()}") for name in names}
    return {name: value for name, value in found.items() if value}


def cause_of(error: BaseException) -> BaseException:
    """Return the error of the tap that caused an error of dlt, or that error itself."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, AuditEventsError):
        cause = cause.__cause__
    return cause or error


def main() -> None:
    parser = argparse.ArgumentParser(description="Load audit events with dlt, incrementally.")
    parser.add_argument("--destination", choices=["duckdb", "postgres"], default="duckdb")
    parser.add_argument("--write-disposition", choices=["append", "merge"], default="merge")
    parser.add_argument("--most-events", type=int, default=MAX_EVENTS, help="per load package")
    given = parser.parse_args()
    pipeline = dlt.pipeline(NAME, destination=given.destination, dataset_name=NAME)
    try:
        count = load(
            pipeline,
            given.write_disposition,
            most_events=given.most_events,
            **environment_settings(),
        )
    except (AuditEventsError, PipelineStepFailed) as error:
        sys.exit(f"dlt_pipeline.py: {cause_of(error)}")
    sys.stdout.write(f"{count} events loaded\n")


if __name__ == "__main__":
    main()
