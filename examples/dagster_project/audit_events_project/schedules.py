"""The schedule that exports today every hour."""

from collections.abc import Iterator
from datetime import UTC, timedelta

import dagster as dg

from audit_events_project.assets import ORGANIZATIONS, audit_events

LATE = timedelta(hours=2)
"""The time after midnight in which the day before is still exported, for late events."""

export_job = dg.define_asset_job("export_days", selection=dg.AssetSelection.assets(audit_events))


@dg.schedule(job=export_job, cron_schedule="10 * * * *", execution_timezone="UTC")
def export_today(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
    """Request a run of today for each organization; in the first hours, also one of yesterday."""
    now = context.scheduled_execution_time.astimezone(UTC)
    for day in sorted({(now - LATE).date(), now.date()}):
        for organization in ORGANIZATIONS:
            key = dg.MultiPartitionKey({"day": day.isoformat(), "organization": organization})
            yield dg.RunRequest(run_key=f"{now.isoformat()} {key}", partition_key=key)
