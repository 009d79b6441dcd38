"""What is loaded by what: each loader with its settings, and those of the tap."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.loaders.clouds import TargetBigquery, TargetElasticsearch
from tests.loaders.duckdb_file import TargetDuckdb
from tests.loaders.files import TargetCsv, TargetJsonl
from tests.loaders.loader import STREAM, Loader, environment_of
from tests.loaders.pipeline import Command, written
from tests.loaders.postgres import MeltanolabsPostgres, PipelinewisePostgres

Settings = Mapping[str, Any]

RAW_EVENT: Final[Settings] = {"raw_event": True}
DETAILS_AS_TEXT: Final[Settings] = {"details_format": "string"}
FLATTENED: Final[Settings] = {"flattening_enabled": True, "flattening_max_depth": 1}

COLUMNS: Final[Settings] = {
    "stream_maps": {
        STREAM: {
            "id": "id",
            "occurredAt": "occurredAt",
            "action_type": "action.get('type')",
            "actor_id": "actor.get('id')",
            "actor_email": "actor.get('email')",
            "entity_id": "entity.get('id')",
            "raw_event": "raw_event",
            "__else__": None,
        }
    }
}
"""A stream map that names each column, so that a field that the schema does not name has none."""


@dataclass(frozen=True)
class Case:
    """A loader with settings.

    Attributes:
        name: how the documents name it.
        loader: the loader.
        tap: the settings of the tap, besides those that say where the service is.
        settings: the settings of the loader, besides those that say where to store.
        is_mapped: whether meltano-map-transform stands between.
        batches: whether the tap sends Singer BATCH messages.
        is_whole: whether the test also makes an incremental run, a run after a failed one, and
            measures the rate.
    """

    name: str
    loader: type[Loader]
    tap: Settings = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    is_mapped: bool = False
    batches: bool = False
    is_whole: bool = True

    def tap_settings(self, folder: Path) -> dict[str, Any]:
        """The settings of the tap; batches are written to a folder."""
        return {**self.tap, **(_batch_config(folder) if self.batches else {})}

    def between(self, folder: Path) -> list[Command]:
        """What stands between the tap and the loader."""
        if not self.is_mapped:
            return []
        package = "meltano-map-transform"
        config = written(folder / "map.json", {"stream_maps": {STREAM: {"organization": "'acme'"}}})
        return [[environment_of(package) / package, "--config", config]]


def _batch_config(folder: Path) -> dict[str, Any]:
    root = folder / "batches"
    root.mkdir(exist_ok=True)
    return {
        "batch_config": {
            "encoding": {"format": "jsonl", "compression": "gzip"},
            "storage": {"root": root.as_uri(), "prefix": "audit-events-"},
        }
    }


_JSONL: Final = {"do_timestamp_file": False}
_CSV: Final = {"file_naming_scheme": "{stream_name}-{timestamp}.csv", "timestamp_format": "%Y-%m-%dT%H%M%S.%f"}
_DUCKDB: Final = {"default_target_schema": "main", "data_flattening_max_level": 0}
_POSTGRES: Final = {"default_target_schema": "public"}
_ELASTICSEARCH: Final = {"metadata_fields": {STREAM: {"_id": "id"}}}
_BIGQUERY: Final = {"method": "batch_job"}

CASES: Final = (
    Case("target-jsonl", TargetJsonl, settings=_JSONL),
    Case("meltano-map-transform, target-jsonl", TargetJsonl, settings=_JSONL, is_mapped=True),
    Case("meltanolabs-target-csv", TargetCsv, settings=_CSV, is_whole=False),
    Case("meltanolabs-target-csv, flattening", TargetCsv, FLATTENED, _CSV, is_whole=False),
    Case("meltanolabs-target-csv, stream map", TargetCsv, {**RAW_EVENT, **COLUMNS}, _CSV),
    Case("target-duckdb", TargetDuckdb, settings=_DUCKDB),
    Case("target-duckdb, raw_event", TargetDuckdb, RAW_EVENT, _DUCKDB, is_whole=False),
    Case("meltanolabs-target-postgres", MeltanolabsPostgres, settings=_POSTGRES),
    Case("meltanolabs-target-postgres, COPY", MeltanolabsPostgres, settings={**_POSTGRES, "use_copy": True}),
    Case("meltanolabs-target-postgres, raw_event", MeltanolabsPostgres, RAW_EVENT, _POSTGRES, is_whole=False),
    Case("pipelinewise-target-postgres", PipelinewisePostgres, settings=_POSTGRES),
    Case("pipelinewise-target-postgres, raw_event", PipelinewisePostgres, RAW_EVENT, _POSTGRES, is_whole=False),
    Case("target-elasticsearch", TargetElasticsearch, settings=_ELASTICSEARCH),
    Case("target-elasticsearch, raw_event", TargetElasticsearch, {**RAW_EVENT, **DETAILS_AS_TEXT}, _ELASTICSEARCH, is_whole=False),
    Case("z3-target-bigquery", TargetBigquery, settings=_BIGQUERY, is_whole=False),
    Case("z3-target-bigquery, details as text", TargetBigquery, DETAILS_AS_TEXT, _BIGQUERY),
)
