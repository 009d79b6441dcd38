"""The cases: each loader with its settings, and with those of the tap."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tests.loaders.clouds import TargetBigquery, TargetElasticsearch
from tests.loaders.duckdb_file import TargetDuckdb
from tests.loaders.files import TargetCsv, TargetJsonl
from tests.loaders.loader import STREAM, Loader, environment_of, version_of
from tests.loaders.pipeline import Command, written
from tests.loaders.postgres import MeltanolabsPostgres, PipelinewisePostgres

Settings = Mapping[str, Any]

RAW_EVENT: Final[Settings] = {"raw_event": True}
DETAILS_AS_TEXT: Final[Settings] = {"details_format": "string"}
FLATTENED: Final[Settings] = {"flattening_enabled": True, "flattening_max_depth": 1}

MAPPER: Final = "meltano-map-transform"
MAP: Final[Settings] = {"stream_maps": {STREAM: {"organization": "'acme'"}}}

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
"""A stream map that names each column; a field that is not in the schema gets none."""


@dataclass(frozen=True)
class Case:
    """A loader with settings.

    Attributes:
        name: how the documents name it.
        loader: the loader.
        tap: the settings of the tap, besides those of the service.
        settings: the settings of the loader, besides those that say where to store.
        needs: what must be installed or set, for the documents.
        is_mapped: whether meltano-map-transform runs between the tap and the loader.
        batches: whether the tap sends Singer BATCH messages.
        repeats: whether the tests also make an incremental run and a run after a failed one.
        is_timed: whether its rate is measured, which would mean nothing with a stand-in.
    """

    name: str
    loader: type[Loader]
    tap: Settings = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    needs: str = ""
    is_mapped: bool = False
    batches: bool = False
    repeats: bool = True
    is_timed: bool = True

    def tap_settings(self, folder: Path) -> dict[str, Any]:
        """The settings of the tap; batches are written to a folder."""
        if not self.batches:
            return {**self.tap}
        root = folder / "batches"
        root.mkdir(exist_ok=True)
        return {**self.tap, **batch_config(root.as_uri())}

    def between(self, folder: Path) -> list[Command]:
        """The commands between the tap and the loader."""
        if not self.is_mapped:
            return []
        config = written(folder / "map.json", MAP)
        return [[environment_of(MAPPER) / MAPPER, "--config", config]]

    def versions(self) -> dict[str, str]:
        """The versions of the loader and of the mapper."""
        packages = [self.loader.package, *([MAPPER] if self.is_mapped else [])]
        return {package: version_of(package) for package in packages}


def batch_config(root: str) -> dict[str, Any]:
    """The setting that makes the tap write batches below a URL."""
    encoding = {"format": "jsonl", "compression": "gzip"}
    storage = {"root": root, "prefix": "audit-events-"}
    return {"batch_config": {"encoding": encoding, "storage": storage}}


_JSONL: Final = Case("target-jsonl", TargetJsonl, settings={"do_timestamp_file": False})
_CSV: Final = Case(
    "meltanolabs-target-csv",
    TargetCsv,
    settings={
        "file_naming_scheme": "{stream_name}-{timestamp}.csv",
        "timestamp_format": "%Y-%m-%dT%H%M%S.%f",
        "batch_size_rows": 10000,
    },
    needs="a file for each run: `{timestamp}`",
)
_DUCKDB: Final = Case(
    "target-duckdb",
    TargetDuckdb,
    needs="`duckdb<1.3`",
    settings={
        "default_target_schema": "main",
        "data_flattening_max_level": 0,
        "batch_size_rows": 10_000,
    },
)
_MELTANOLABS: Final = Case(
    "meltanolabs-target-postgres", MeltanolabsPostgres, settings={"default_target_schema": "public"}
)
_PIPELINEWISE: Final = Case(
    "pipelinewise-target-postgres",
    PipelinewisePostgres,
    needs="Python 3.11, or a newer `psycopg2-binary` than it pins",
    settings={"default_target_schema": "public"},
)
_ELASTICSEARCH: Final = Case(
    "target-elasticsearch",
    TargetElasticsearch,
    settings={"index_format": "{{ stream_name }}", "metadata_fields": {STREAM: {"_id": "id"}}},
    needs="`metadata_fields`",
    is_timed=False,
)
_BIGQUERY: Final = Case(
    "z3-target-bigquery",
    TargetBigquery,
    settings={"method": "batch_job"},
    needs="`setuptools<81`",
    is_timed=False,
)


def _variant(case: Case, name: str, *, is_brief: bool = False, **fields: Any) -> Case:
    """The same loader with other settings; a brief case only tests what happens to each field."""
    if is_brief:
        fields |= {"repeats": False, "is_timed": False}
    return replace(case, name=f"{case.name}, {name}", **fields)


CASES: Final = (
    _JSONL,
    _variant(_JSONL, "behind meltano-map-transform", is_mapped=True),
    replace(_CSV, repeats=False, is_timed=False),
    _variant(_CSV, "flattening", is_brief=True, tap=FLATTENED),
    _variant(_CSV, "stream map", tap={**RAW_EVENT, **COLUMNS}),
    _DUCKDB,
    _variant(_DUCKDB, "raw_event", is_brief=True, tap=RAW_EVENT),
    _MELTANOLABS,
    _variant(_MELTANOLABS, "COPY", settings={**_MELTANOLABS.settings, "use_copy": True}),
    _variant(
        _MELTANOLABS, "BATCH", settings={**_MELTANOLABS.settings, "use_copy": True}, batches=True
    ),
    _variant(_MELTANOLABS, "raw_event", is_brief=True, tap=RAW_EVENT),
    _PIPELINEWISE,
    _variant(_PIPELINEWISE, "raw_event", is_brief=True, tap=RAW_EVENT),
    _ELASTICSEARCH,
    _variant(_ELASTICSEARCH, "raw_event", is_brief=True, tap={**DETAILS_AS_TEXT, **RAW_EVENT}),
    replace(_BIGQUERY, repeats=False),
    _variant(_BIGQUERY, "details as text", tap=DETAILS_AS_TEXT),
)
