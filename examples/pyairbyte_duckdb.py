"""Loads audit events into DuckDB with PyAirbyte; each further run adds the new events.

Install PyAirbyte with ``pip install airbyte``; ``source-audit-events`` must be on the ``PATH``.
"""

import os

import airbyte as ab
from airbyte.caches import DuckDBCache

source = ab.get_source(
    "source-audit-events",
    local_executable="source-audit-events",
    config={
        "base_url": os.environ["TAP_AUDIT_EVENTS_BASE_URL"],
        "organization_id": os.environ["TAP_AUDIT_EVENTS_ORGANIZATION_ID"],
        "access_token": ab.get_secret("TAP_AUDIT_EVENTS_ACCESS_TOKEN"),
    },
)
source.check()
source.select_all_streams()
result = source.read(cache=DuckDBCache(db_path="audit_events.duckdb"))
print(result.processed_records, "new events")
