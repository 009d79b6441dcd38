"""Waits until COUNT runs of a Dagster instance have ended, and prints a report of each partition.

It runs in the environment of Dagster.
"""

import json
import sys
import time
from typing import Any

from dagster import DagsterEventType, DagsterInstance, DagsterRun

PARTITION = "dagster/partition"
POLL_SECONDS = 0.5


def wait(instance: DagsterInstance, count: int) -> dict[str, Any]:
    """Wait until that many runs have ended, and return a report of each partition."""
    while sum(run.is_finished for run in instance.get_runs()) < count:
        time.sleep(POLL_SECONDS)
    return {run.tags[PARTITION]: report(instance, run) for run in instance.get_runs()}


def report(instance: DagsterInstance, run: DagsterRun) -> dict[str, Any]:
    """The status of a run, with its row counts and checks."""
    events = [entry.dagster_event for entry in instance.all_logs(run.run_id)]
    found = [event for event in events if event is not None]
    return {
        "status": run.status.value,
        "rows": [
            event.step_materialization_data.materialization.metadata["dagster/row_count"].value
            for event in found
            if event.is_step_materialization
        ],
        "checks": [
            event.asset_check_evaluation_data.passed
            for event in found
            if event.event_type == DagsterEventType.ASSET_CHECK_EVALUATION
        ],
    }


if __name__ == "__main__":
    with DagsterInstance.get() as instance:
        sys.stdout.write(json.dumps(wait(instance, int(sys.argv[1]))))
