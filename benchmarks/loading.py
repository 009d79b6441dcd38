"""The ways into files and tables: measured from the start of all processes to their end."""

import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from benchmarks.candidates import OWN, Candidate, Command, Job, dlt, words
from benchmarks.counting import POSTGRES, count
from benchmarks.measuring import FailedError, new_job, timed
from benchmarks.results import Figure, Run
from benchmarks.sandbox import Sandbox, start_sandbox
from tests.loaders.cases import CASES
from tests.loaders.loader import environment_of
from tests.loaders.postgres_server import USER, PostgresServer, postgres_server

EVENTS: Final = 200_000
MANY_EVENTS: Final = 1_000_000
"""So many are also exported, as memory must not grow with their number."""


def _place(job: Job, to: str) -> str:
    return job.database if to == POSTGRES else to


def _export(to: str) -> Command:
    command = words(OWN / "audit-events", "export", "--quiet", "--to")
    return lambda job: [*command, _place(job, to), *job.config()]


def _export_to_iceberg(job: Job) -> list[str]:
    catalog = {
        "URI": f"sqlite:///{job.folder}/catalog.db",
        "WAREHOUSE": f"file://{job.folder}/lake",
    }
    variables = [f"PYICEBERG_CATALOG__PROD__{name}={value}" for name, value in catalog.items()]
    return ["env", *variables, *_export("iceberg:prod/audit.events")(job)]


def _dlt(to: str) -> Command:
    return lambda job: dlt("--load", _place(job, to))(job)


def _tap(case_name: str) -> Command:
    """The tap and a loader, with settings that the tests use, too."""
    (case,) = (case for case in CASES if case.name == case_name)
    package = case.loader.package

    def command(job: Job) -> list[str]:
        loader = environment_of(package) / case.loader.executable
        settings = {**case.settings, **_place_of_loader(package, job)}
        tap = words(OWN / "tap-audit-events", *job.config(**case.tap_settings(job.folder)))
        target = words(loader, "--config", job.file("loader.json", settings))
        return ["bash", "-o", "pipefail", "-c", f"{shlex.join(tap)} | {shlex.join(target)}"]

    return command


def _place_of_loader(package: str, job: Job) -> dict[str, Any]:
    if package == "target-jsonl":
        return {"destination_path": "."}
    if package == "target-duckdb":
        return {"filepath": "events.duckdb"}
    url = urlsplit(job.database)
    return {
        "host": url.hostname,
        "port": url.port,
        "user": url.username,
        "password": url.password,
        "database": url.path.strip("/"),
    }


_PARQUET, _DUCKDB = "events.parquet", "events.duckdb"
_LAKE, _DLT_DELTA = "lake/**/*.parquet", "tables/public/audit_events/*.parquet"
_BATCH: Final = "meltanolabs-target-postgres, BATCH"

LOADS: Final = {
    "parquet": Candidate("`audit-events export` to Parquet", _export(_PARQUET), _PARQUET, True),
    "duckdb": Candidate("`audit-events export` to DuckDB", _export(_DUCKDB), _DUCKDB, True),
    "postgres": Candidate("`audit-events export` to PostgreSQL", _export(POSTGRES), POSTGRES, True),
    "delta": Candidate("`audit-events export` to Delta", _export("delta:lake"), _LAKE, True),
    "iceberg": Candidate("`audit-events export` to Iceberg", _export_to_iceberg, _LAKE, True),
    "tap-postgres-batch": Candidate(
        "tap and meltanolabs-target-postgres, batches", _tap(_BATCH), POSTGRES
    ),
    "tap-postgres": Candidate(
        "tap and meltanolabs-target-postgres", _tap("meltanolabs-target-postgres"), POSTGRES
    ),
    "dlt-postgres": Candidate("dlt, REST source, to PostgreSQL", _dlt(POSTGRES), POSTGRES),
    "dlt-delta": Candidate("dlt, REST source, to Delta", _dlt("tables"), _DLT_DELTA),
    "tap-duckdb": Candidate("tap and target-duckdb", _tap("target-duckdb"), _DUCKDB),
    "tap-jsonl": Candidate("tap and target-jsonl", _tap("target-jsonl"), "*.jsonl"),
}
"""In the order of the table."""


def run_loads(repetitions: int, scale: float) -> Iterator[Figure]:
    """Load events from a sandbox that responds at once into empty files and tables.

    Raises:
        FailedError: a load failed, or did not load every event once.
    """
    own = {f"{name}, many": each for name, each in LOADS.items() if each.is_own}
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres_server(Path(folder)) as server,
    ):
        with start_sandbox(1000, 0) as sandbox:  # then the files are compiled, and in the cache
            for candidate in LOADS.values():
                _run(candidate, sandbox, server)
        for events, candidates in ((EVENTS, LOADS), (MANY_EVENTS, own)):
            with start_sandbox(max(1000, int(events * scale)), 0) as sandbox:
                for name, candidate in candidates.items():
                    runs = [_run(candidate, sandbox, server) for _ in range(repetitions)]
                    yield Figure(name, sandbox.milliseconds, sandbox.events, runs).shown()


def _run(candidate: Candidate, sandbox: Sandbox, server: PostgresServer) -> Run:
    with new_job(sandbox.settings) as given:
        database = given.folder.name
        server.create_database(database)
        address = f"{USER}:{server.password}@127.0.0.1:{server.port}"
        job = replace(given, database=f"postgresql://{address}/{database}")
        run = timed(candidate, job)
        found = count(candidate.output, (), job)
        if found[:2] != (sandbox.events, sandbox.events):
            raise FailedError(f"{candidate.label}: {found[:2]} of {sandbox.events} events")
        server.query("postgres", f'DROP DATABASE "{database}"')
        return run


if __name__ == "__main__":  # a process of its own: the peak of a child is never below its parent's
    figures = list(run_loads(int(sys.argv[1]), float(sys.argv[2])))
    sys.stdout.buffer.write(msgspec.json.encode(figures))
