"""The asset, a Parquet file for each day and organization, and its check."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from audit_events_project import parquet_file
from audit_events_project.day import Day
from audit_events_project.organizations import read_organizations
from audit_events_project.retries import errors_for_dagster
from tap_audit_events import AuditEvents

FIRST_DAY, ORGANIZATIONS = read_organizations()
PARTITIONS = dg.MultiPartitionsDefinition(
    {
        "day": dg.DailyPartitionsDefinition(FIRST_DAY, timezone="UTC", end_offset=1),
        "organization": dg.StaticPartitionsDefinition(list(ORGANIZATIONS)),
    }
)
"""With `end_offset=1`, today is a partition too."""

POOL = "audit_events_token"
"""The pool of one token's owner; `dagster.yaml` limits how many of its steps run at a time."""

KILLED = dg.RetryPolicy(max_retries=3, delay=5, backoff=dg.Backoff.EXPONENTIAL)
"""Retries a step whose process is killed; `errors_for_dagster` retries after service errors."""


class Export(dg.ConfigurableResource[None]):
    """The access to the service, and the folder of the files.

    Attributes:
        access_token: the token; Dagster resolves it in the process of the step.
        folder: the folder in which the files are written.
        retry_seconds: the wait before the first retry.
    """

    access_token: str
    folder: str
    retry_seconds: float = 30.0

    def log(self, organization: str) -> AuditEvents:
        """Return a reader of the events of an organization."""
        where = ORGANIZATIONS[organization]
        return AuditEvents(
            base_url=where.base_url,
            organization_id=where.organization_id,
            access_token=self.access_token,
        )

    def path(self, organization: str, day: str) -> Path:
        """Return the path of the file of a partition."""
        folder = Path(self.folder) / f"organization={organization}" / f"day={day}"
        return folder / "audit_events.parquet"


def _partition(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
) -> tuple[str, str]:
    """Return the organization and the day of a partition."""
    key = PARTITIONS.get_partition_key_from_str(context.partition_key).keys_by_dimension
    return key["organization"], key["day"]


@dg.asset(partitions_def=PARTITIONS, pool=POOL, retry_policy=KILLED)
def audit_events(context: dg.AssetExecutionContext, export: Export) -> dg.MaterializeResult[None]:
    """The audit events of one organization and day."""
    organization, key = _partition(context)
    path = export.path(organization, key)
    with errors_for_dagster(context.retry_number, export.retry_seconds):
        day = Day.of(key, datetime.now(UTC))
        batches = day.batches(export.log(organization))
        count = parquet_file.write(path, batches, until=day.until, run_id=context.run_id)
    return dg.MaterializeResult(metadata={"dagster/row_count": count, "path": str(path)})


@dg.asset_check(asset=audit_events, pool=POOL, retry_policy=KILLED)
def count_equals_the_service(
    context: dg.AssetCheckExecutionContext, export: Export
) -> dg.AssetCheckResult:
    """Check that the file has as many events as the service shows now in the same range.

    If the service shows more, some became visible late: materialize the partition again.
    """
    organization, key = _partition(context)
    path = export.path(organization, key)
    with errors_for_dagster(context.op_execution_context.retry_number, export.retry_seconds):
        day = Day.of(key, parquet_file.until(path))
        shown = sum(batch.num_rows for batch in day.batches(export.log(organization)))
    count = parquet_file.count(path)
    return dg.AssetCheckResult(
        passed=shown == count, metadata={"in the file": count, "at the service": shown}
    )
