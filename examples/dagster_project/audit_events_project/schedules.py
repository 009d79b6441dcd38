"""The schedule that exports today every hour."""

from collections.abc import Iterator
from datetime import UTC, timedelta

import dagster as dg

from audit_events_project.assets import ORGANIZATIONS, audit_events

LATE = timedelta(hours=2)
"""How long after midnight the day before is exported again, for events that become visible late."""

export_job = dg.define_asset_job("export_days", selection=dg.AssetSelection.assets(audit_events))


@dg.schedule(job=export_job, cron_schedule="10 * * * *", execution_timezone="UTC")
def export_today(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
    """A run for each organization and today; in the first hours of a day also for yesterday."""
    now = context.scheduled_execution_time.astimezone(UTC)
    for day in sorted({(now - LATE).date(), now.date()}):
        for organization in ORGANIZATIONS:
            key = dg.MultiPartitionKey({"day": day.isoformat(), "organization": organization})
            yield dg.RunRequest(run_key=f"{now.isoformat()} {key}", partition_key=key)
