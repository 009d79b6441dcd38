"""Runs parts of the Dagster example one by one, in the environment of Dagster."""

import json
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import dagster as dg
from audit_events_project.assets import ORGANIZATIONS
from audit_events_project.definitions import defs
from audit_events_project.retries import errors_for_dagster
from audit_events_project.schedules import export_today

from tap_audit_events import AuditEvents

JOB = defs.resolve_job_def("export_days")


def materialize(partitions: Sequence[str]) -> list[Any]:
    """Export each partition and check it, in this process."""
    return [_executed(partition) for partition in partitions]


def check(partitions: Sequence[str]) -> list[Any]:
    """Check each partition, without an export."""
    selection = [dg.AssetCheckKey(dg.AssetKey("audit_events"), "count_equals_the_service")]
    return [_executed(partition, asset_check_selection=selection) for partition in partitions]


def _executed(partition: str, **options: Any) -> dict[str, Any]:
    done = JOB.get_subset(
        asset_selection=set() if options else None,
        asset_check_selection=set(options["asset_check_selection"]) if options else None,
    ).execute_in_process(partition_key=partition, raise_on_error=False)
    return {
        "success": done.success,
        "checks": [each.passed for each in done.get_asset_check_evaluations()],
    }


def error(organizations: Sequence[str]) -> list[Any]:
    """What the example reports to Dagster about the error of an export."""
    found = []
    for organization in organizations:
        where = ORGANIZATIONS[organization]
        log = AuditEvents(
            **vars(where), access_token=os.environ["TAP_AUDIT_EVENTS_ACCESS_TOKEN"], max_retries=1
        )
        try:
            with errors_for_dagster(0, 30):
                list(log.pages())
        except dg.RetryRequested as request:
            told = {"retried": True, "seconds": request.seconds_to_wait}
            found.append({**told, "message": str(request.__cause__)})
        except dg.Failure as failure:
            found.append({"retried": failure.allow_retries, "message": failure.description})
    return found


def schedule(times: Sequence[str]) -> list[Any]:
    """The partitions that the schedule requests at each of these times."""
    return [
        [
            request.partition_key
            for request in export_today(
                dg.build_schedule_context(scheduled_execution_time=datetime.fromisoformat(time))
            )
        ]
        for time in times
    ]


COMMANDS = {"materialize": materialize, "check": check, "error": error, "schedule": schedule}

if __name__ == "__main__":
    result = COMMANDS[sys.argv[1]](sys.argv[2:])
    sys.stdout.write(json.dumps(result))
