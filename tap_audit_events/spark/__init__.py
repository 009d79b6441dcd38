"""The Spark data source ``audit_events``: read on a cluster, in batches or as a stream."""

from tap_audit_events.errors.exceptions import missing_extra

try:
    import pyarrow  # noqa: F401 - Spark reads Arrow batches
    import pyspark.sql.datasource  # noqa: F401
except ImportError as error:
    raise missing_extra(error.name or "pyspark", "spark") from None

from tap_audit_events.spark.data_source import AuditEventsDataSource

__all__ = ["AuditEventsDataSource"]
