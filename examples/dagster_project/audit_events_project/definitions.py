"""The definitions that Dagster loads."""

import dagster as dg

from audit_events_project.assets import Export, audit_events, count_equals_the_service
from audit_events_project.schedules import export_job, export_today

MODULES = [
    "audit_events_project.assets",
    # Every step of Dagster imports these; a module that a later version does not have is skipped.
    "dagster._core.workspace.autodiscovery",
    "dagster._core.storage.sqlite_storage",
    "dagster._core.instance.factory",
]

defs = dg.Definitions(
    assets=[audit_events],
    asset_checks=[count_equals_the_service],
    jobs=[export_job],
    schedules=[export_today],
    # Each step is a process, forked from one that has imported these modules.
    executor=dg.multiprocess_executor.configured(
        {"max_concurrent": 2, "start_method": {"forkserver": {"preload_modules": MODULES}}}
    ),
    resources={
        "export": Export(
            access_token=dg.EnvVar("TAP_AUDIT_EVENTS_ACCESS_TOKEN"),
            folder=dg.EnvVar("AUDIT_EVENTS_FOLDER"),
        )
    },
)
