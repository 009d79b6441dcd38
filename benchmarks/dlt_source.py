"""The same stream read by dlt's `rest_api` source: the extract step, up to its files on disk.

It runs in its own environment. With `--load`, the whole pipeline runs and loads into PostgreSQL or
into a Delta table. With `--slices`, eight workers read the range day by day, with the parallel
dependent resource that dlt's documentation shows; dlt then keeps no bookmark.
"""

import argparse
import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

# dlt reads these when it is imported.
SETTINGS: Final = {"RUNTIME__DLTHUB_TELEMETRY": "false", "RUNTIME__LOG_LEVEL": "WARNING"}
EXTRACT_SETTINGS: Final = {
    "DATA_WRITER__DISABLE_COMPRESSION": "true",
    "DATA_WRITER__BUFFER_MAX_ITEMS": "10000",
    "EXTRACT__WORKERS": "8",
}
"""For the extract step alone, whose files are counted; a load has the defaults."""
DAY: Final = timedelta(days=1)


def events(config: Mapping[str, Any], parameters: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the resource for the configuration of `rest_api`."""
    return {
        "name": "audit_events",
        "primary_key": "id",
        "write_disposition": "append",
        "endpoint": {
            "path": f"v1/organizations/{config['organization_id']}/audit_events",
            "params": {"order": "asc", "pageSize": 1000, **parameters},
            "data_selector": "auditEvents",
        },
        **more,
    }


def incremental(config: Mapping[str, Any]) -> list[Any]:
    """Return a resource that reads from the bookmark, one page after the other."""
    resource = events(config, {})
    resource["endpoint"]["incremental"] = {
        "start_param": "startTime",
        "cursor_path": "occurredAt",
        "initial_value": config["start_date"],
        "row_order": "asc",
    }
    return [resource]


def sliced(config: Mapping[str, Any]) -> list[Any]:
    """Return resources that read the range day by day, several days in parallel."""
    import dlt  # noqa: PLC0415 - it reads its settings on import

    days = dlt.resource([list(_days(config))], name="days", selected=False)
    bounds = {"startTime": "{resources.days.start}", "endTime": "{resources.days.end}"}
    return [days, events(config, bounds, parallelized=True)]


def _days(config: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    start = datetime.fromisoformat(config["start_date"])
    end = datetime.fromisoformat(config["end_date"])
    while start <= end:
        last = start + DAY - timedelta(microseconds=1)
        yield {"start": start.isoformat(), "end": min(last, end).isoformat()}
        start += DAY


def run(config: Mapping[str, Any], resources: list[Any], folder: Path, load: str | None) -> None:
    """Run the extract step, or the whole pipeline if there is a place to load into."""
    import dlt  # noqa: PLC0415 - it reads its settings on import
    from dlt.sources.rest_api import rest_api_source  # noqa: PLC0415

    source = rest_api_source(
        {
            "client": {
                "base_url": config["base_url"],
                "auth": {"type": "bearer", "token": config["access_token"]},
                "paginator": {
                    "type": "cursor",
                    "cursor_path": "nextCursor",
                    "cursor_param": "cursor",
                },
            },
            "resources": resources,
        },
    )
    if load is None:
        pipeline = dlt.pipeline("audit_events", pipelines_dir=str(folder))
        pipeline.extract(source)
    else:
        is_database = load.startswith("postgresql:")
        pipeline = dlt.pipeline(
            "audit_events",
            pipelines_dir=str(folder),
            destination=dlt.destinations.postgres(load)
            if is_database
            else dlt.destinations.filesystem(str(Path(load).absolute())),
            dataset_name="public",
        )
        pipeline.run(source, **({} if is_database else {"table_format": "delta"}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="where dlt keeps its files")
    parser.add_argument("--load", help="the URL of a database, or a folder for a Delta table")
    parser.add_argument("--slices", action="store_true")
    given = parser.parse_args()
    config = json.loads(given.config.read_text())
    os.environ |= SETTINGS if given.load else SETTINGS | EXTRACT_SETTINGS
    resources = sliced(config) if given.slices else incremental(config)
    run(config, resources, given.folder, given.load)


if __name__ == "__main__":
    main()
