"""The class that is registered with Spark."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from tap_audit_events.api.arrow import SCHEMA
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.spark.batch import BatchReader, FilteringReader
from tap_audit_events.spark.options import read_options

_TYPES = {
    field.name: StringType() if field.type == "string" else TimestampType() for field in SCHEMA
}


class AuditEventsDataSource(DataSource):
    """The audit events of one or several organizations, for ``spark.read`` and ``readStream``.

    The options are the settings of the tap, with the same names, defaults and checks, and those of
    `SparkOptions`. Settings that are not given as options are read from the environment variables
    ``TAP_AUDIT_EVENTS_…``, on the driver and on each executor.

    Example:
        >>> spark.dataSource.register(AuditEventsDataSource)
        >>> events = spark.read.format("audit_events").option("base_url", …).load()
    """

    @classmethod
    def name(cls) -> str:
        return "audit_events"

    def schema(self) -> StructType:
        """The columns of `AuditEvents.arrow_schema`."""
        return StructType(
            [StructField(name, kind, SCHEMA.field(name).nullable) for name, kind in _TYPES.items()]
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        options = read_options(self.options)
        columns = _checked_columns(schema)
        new_reader = FilteringReader if options.push_filters else BatchReader
        return new_reader(dict(self.options), columns)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        try:
            from tap_audit_events.spark.stream import StreamReader  # noqa: PLC0415
        except ImportError:
            problem = "a stream needs Spark 4.2 or newer: install it, or use spark.read"
            raise SettingsError([problem]) from None
        read_options(self.options)
        return StreamReader(dict(self.options), _checked_columns(schema))


def _checked_columns(schema: StructType) -> dict[str, bool]:
    """The columns to read, and whether each may be null.

    Raises:
        SettingsError: a column does not exist or has another type.
    """
    problems = [
        f"the schema has {sanitize(field.name)} as {field.dataType.simpleString()}: choose some of"
        f" the columns {', '.join(_TYPES)}; occurred_at is a timestamp, the others are strings"
        for field in schema
        if _TYPES.get(field.name) != field.dataType
    ]
    if problems:
        raise SettingsError(problems)
    return {field.name: field.nullable for field in schema}
