"""Commands for a Dagster instance, which run in the environment of Dagster.

``backfill PARTITIONS`` executes a run for each, one after the other, each step in a process.
``kill PARTITION`` kills the process of the partition's export while it runs, and prints its id.
``wait COUNT`` waits until that many runs have ended, and prints a report of each partition.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from dagster import DagsterEventType, DagsterInstance, DagsterRun, RunsFilter, execute_job
from dagster._core.definitions.reconstruct import ReconstructableRepository

PARTITION = "dagster/partition"
POLL_SECONDS = 0.5


def backfill(instance: DagsterInstance, partitions: str) -> None:
    """Execute a run for each of these partitions, which are separated by commas."""
    from audit_events_project.assets import PARTITIONS  # noqa: PLC0415 - reads the environment

    repository = ReconstructableRepository.for_module("audit_events_project.definitions", "defs")
    job = repository.get_reconstructable_job("export_days")
    for partition in partitions.split(","):
        tags = PARTITIONS.get_tags_for_partition_key(partition)
        with execute_job(job, instance=instance, tags=tags, raise_on_error=False):
            pass


def kill(instance: DagsterInstance, partition: str) -> int:
    """Kill the process of the partition's first step, as soon as it runs."""
    while True:
        for run in instance.get_runs(RunsFilter(tags={PARTITION: partition})):
            for entry in instance.all_logs(
                run.run_id, of_type=DagsterEventType.STEP_WORKER_STARTED
            ):
                assert entry.dagster_event
                metadata: dict[str, Any] = entry.dagster_event.engine_event_data.metadata
                pid = int(metadata["pid"].value)
                os.kill(pid, signal.SIGKILL)
                return pid
        time.sleep(POLL_SECONDS)


def wait(instance: DagsterInstance, count: str) -> dict[str, Any]:
    """Wait until that many runs have ended, and return a report of each partition."""
    while sum(run.is_finished for run in instance.get_runs()) < int(count):
        time.sleep(POLL_SECONDS)
    return {run.tags[PARTITION]: report(instance, run) for run in instance.get_runs()}


def report(instance: DagsterInstance, run: DagsterRun) -> dict[str, Any]:
    """The status of a run, with its retries, row counts and checks."""
    events = [entry.dagster_event for entry in instance.all_logs(run.run_id)]
    found = [event for event in events if event is not None]
    return {
        "status": run.status.value,
        "retries": sum(event.is_step_up_for_retry for event in found),
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


COMMANDS: dict[str, Callable[[DagsterInstance, str], Any]] = {
    "backfill": backfill,
    "kill": kill,
    "wait": wait,
}


def main() -> None:
    command, argument = sys.argv[1:]
    with DagsterInstance.get() as instance:
        result = COMMANDS[command](instance, argument)
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
