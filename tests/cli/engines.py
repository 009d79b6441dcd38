"""Query engines that read an export: what each is told, what arrives, and a table of both.

`python -m tests.cli.engines` updates the table in `docs/export.md`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from benchmarks.report import generator
from tap_audit_events.config.names import ENVIRONMENT_PREFIX
from tap_audit_events.sandbox import Service, generate, serve
from tests.builders import an_event
from tests.examples.environments import OWN, run_python
from tests.forking import COMMAND
from tests.integrations.pipeline import NOON, PROJECT
from tests.running import settings_for

PAGE: Final = PROJECT / "docs" / "export.md"
PART: Final = "engines"

NUMBER: Final = "12345678901234567890123"


def hostile(id_: str, **details: Any) -> dict[str, Any]:
    return an_event(id_, action={"type": "role_change", "details": details})


EVENTS: Final = [
    *generate(120, days=3, seed=1, until=NOON),
    hostile("007", count=int(NUMBER)),
    hostile("1e5", count="text"),
    hostile("2024-05-06", Region="eu"),
    hostile("9F3A0E6E-0000-4000-8000-00000000000A", region="us", REGION="asia"),
    an_event("nine digits", f"{NOON:%Y-%m-%d}T07:32:00.123456789Z"),
    an_event("end of a day", f"{NOON:%Y-%m-%d}T23:59:59.9999999Z"),
]

FOLDER, FILE, LINES = "events/", "events.duckdb", "events.jsonl"
DELTA, ICEBERG = "delta:lake/", "iceberg:prod/audit.events"
HAVE_DAYS: Final = {FOLDER, DELTA}
ABSOLUTE: Final = "/srv/"
"""Stands for the folder of a test, where an engine needs an absolute path."""


@dataclass(frozen=True)
class Engine:
    """An engine, and Python expressions about `events`, which is what it has read.

    Attributes:
        name: how the documents call it.
        package: what is installed; its version is shown.
        setup: what comes before the expressions.
        columns: the type of each column.
        rows: the id, the microseconds, the exact time, the details and, if there is one, the {day}
            of each event.
        day: the day as a text.
        number: {of} of the event `007`.
        environment: where it is installed.
    """

    name: str
    package: str
    setup: str
    columns: str
    rows: str
    day: str
    number: str
    environment: str = "readers"


_ARROW_ROWS: Final = (
    "[[event['id'], round(event['occurred_at'].timestamp() * 10**6), event['occurred_at_text'],"
    " event['action_details']{day}] for event in TABLE.to_pylist()]"
)

DUCKDB: Final = Engine(
    "DuckDB",
    "duckdb",
    "import duckdb",
    columns="dict(zip(events.columns, map(str, events.types)))",
    rows="events.project('id, epoch_us(occurred_at), occurred_at_text, action_details{day}')"
    ".fetchall()",
    day="CAST(day AS VARCHAR)",
    number="""events.filter("id = '007'").project("{of}").fetchall()""",
)
POLARS: Final = Engine(
    "Polars",
    "polars",
    "import polars\nfrom pyiceberg.catalog import load_catalog",
    columns="{name: str(type_) for name, type_ in events.collect_schema().items()}",
    rows="events.select('id', polars.col('occurred_at').dt.epoch('us'), 'occurred_at_text',"
    " 'action_details'{day}).collect().rows()",
    day="polars.col('day').cast(polars.String)",
    number="events.filter(polars.col('id') == '007').select({of}).collect().rows()",
)
PANDAS: Final = Engine(
    "pandas",
    "pandas",
    "import pandas",
    columns="{name: str(type_) for name, type_ in events.dtypes.items()}",
    rows="list(zip(events['id'], events['occurred_at'].astype('int64').tolist(),"
    " events['occurred_at_text'], events['action_details']{day}))",
    day="events['day']",
    number="(lambda events: {of})(events[events['id'] == '007']).tolist()",
)
PYARROW: Final = Engine(
    "Arrow datasets",
    "pyarrow",
    "import pyarrow.dataset",
    columns="{field.name: str(field.type) for field in events.schema}",
    rows=_ARROW_ROWS.replace("TABLE", "events.to_table()"),
    day="str(event['day'])",
    number="[{of} for text in events.to_table(filter=pyarrow.dataset.field('id') == '007')"
    "['action_details'].to_pylist()]",
)
DELTALAKE: Final = replace(
    PYARROW,
    name="deltalake",
    package="deltalake",
    setup="import pyarrow.dataset\nfrom deltalake import DeltaTable",
)
CHDB: Final = Engine(
    "chDB",
    "chdb",
    "import chdb\n"
    "def rows(query):\n"
    "    text = str(chdb.query(query, 'JSONCompactEachRow'))\n"
    "    return [json.loads(line) for line in text.splitlines()]\n",
    columns="dict(row[:2] for row in rows(f'DESCRIBE {events}'))",
    rows="rows(f'SELECT id, toUnixTimestamp64Micro(occurred_at), occurred_at_text,"
    " action_details{day} FROM {events}')",
    day="toString(day)",
    number="""rows(f"SELECT {of} FROM {events} WHERE id = '007'")""",
)
PYICEBERG: Final = Engine(
    "PyIceberg",
    "pyiceberg",
    "from pyiceberg.catalog import load_catalog",
    columns="{field.name: str(field.field_type) for field in events.projection().fields}",
    rows=_ARROW_ROWS.replace("TABLE", "events.to_arrow()"),
    day="",
    number="[{of} for text in events.filter(\"id == '007'\").to_arrow()['action_details']"
    ".to_pylist()]",
)
SPARK: Final = Engine(
    "Spark",
    "pyspark",
    "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()",
    columns="dict(events.dtypes)",
    rows="list(map(list, events.selectExpr('id', 'unix_micros(occurred_at)', 'occurred_at_text',"
    " 'action_details'{day}).collect()))",
    day="'CAST(day AS STRING)'",
    number="""list(map(list, events.where("id = '007'").selectExpr("{of}").collect()))""",
    environment="spark",
)


@dataclass(frozen=True)
class Reading:
    """How an engine reads an output.

    Attributes:
        engine: the engine.
        output: the output.
        read: an expression for `events`.
        exact: an expression for a number in the details, with every digit.
        rounded: a usual one, which gives another number.
        beware: what else to know.
        environment: where the engine is installed, if that is not its usual environment.
    """

    engine: Engine
    output: str
    read: str
    exact: str
    rounded: str = ""
    beware: str = ""
    environment: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, [self.engine.name, self.output, self.environment]))


_PATTERN: Final = "events/*/*.parquet"
_SESSION: Final = "dates of `occurred_at` are of the time zone of the session: "


def _of_duckdb(output: str, read: str) -> list[Reading]:
    """With the oldest and the newest version that the tests have."""
    return [
        Reading(
            DUCKDB,
            output,
            read,
            "action_details ->> '$.count'",
            beware=f"{_SESSION}`SET TimeZone = 'UTC'`",
            environment=environment,
        )
        for environment in (OWN, "")
    ]


_POLARS_NUMBER: Final = (
    'polars.col("action_details").str.json_decode(polars.Struct({"count": polars.String}))',
    'polars.col("action_details").str.json_path_match("$.count")',
)
_CHDB_NUMBER: Final = (
    "JSONExtractRaw(action_details, 'count')",
    "JSONExtractInt(action_details, 'count')",
)
_OF_CATALOG: Final = 'load_catalog("prod").load_table("audit.events")'

READINGS: Final = (
    *_of_duckdb(
        FOLDER, f"""duckdb.sql("FROM read_parquet('{_PATTERN}', hive_partitioning = true)")"""
    ),
    Reading(
        POLARS,
        FOLDER,
        f'polars.scan_parquet("{_PATTERN}", hive_partitioning=True)',
        *_POLARS_NUMBER,
        "without the pattern, it refuses a folder with a file of another ending",
    ),
    Reading(
        PANDAS,
        FOLDER,
        'pandas.read_parquet("events/")',
        'events["action_details"].map(json.loads)',
    ),
    Reading(
        PYARROW,
        FOLDER,
        'pyarrow.dataset.dataset("events/", partitioning="hive")',
        "json.loads(text)",
        beware="for dates, `partitioning=pyarrow.dataset.partitioning("
        'pyarrow.schema([("day", pyarrow.date32())]), flavor="hive")`',
    ),
    Reading(
        SPARK,
        FOLDER,
        'spark.read.parquet("events/")',
        "get_json_object(action_details, '$.count')",
        beware=f'{_SESSION}`spark.conf.set("spark.sql.session.timeZone", "UTC")`',
    ),
    Reading(CHDB, FOLDER, f"file('{_PATTERN}')", *_CHDB_NUMBER),
    *_of_duckdb(
        FILE, f"""duckdb.sql("ATTACH '{FILE}' AS file (READ_ONLY); FROM file.audit_events")"""
    ),
    Reading(DELTALAKE, DELTA, 'DeltaTable("lake/").to_pyarrow_dataset()', "json.loads(text)"),
    Reading(POLARS, DELTA, 'polars.scan_delta("lake/")', *_POLARS_NUMBER),
    Reading(
        CHDB,
        DELTA,
        f"deltaLakeLocal('{ABSOLUTE}lake/')",
        *_CHDB_NUMBER,
        "times are shown in the time zone of the machine: `SETTINGS session_timezone = 'UTC'`."
        " It needs an absolute path",
    ),
    Reading(PYICEBERG, ICEBERG, f"{_OF_CATALOG}.scan()", "json.loads(text)"),
    Reading(POLARS, ICEBERG, f"polars.scan_iceberg({_OF_CATALOG})", *_POLARS_NUMBER),
    Reading(CHDB, ICEBERG, "icebergLocal('warehouse/audit/events')", *_CHDB_NUMBER),
)
"""In the order of the table."""


class Found(msgspec.Struct, frozen=True):
    """What arrived: the version of the engine, the type of each column, and values."""

    version: str
    columns: dict[str, str]
    rows: list[list[Any]]
    exact: Any
    rounded: Any


def export_all(folder: Path) -> None:
    """Export the events into a folder, as each kind of output."""
    service = Service()
    service.add(EVENTS)
    with serve(service) as server:
        settings = settings_for(service, server.base_url)
        given = {
            f"{ENVIRONMENT_PREFIX}{name.upper()}": str(each) for name, each in settings.items()
        }
        for output in {LINES, *(each.output for each in READINGS)}:
            command = [sys.executable, "-m", COMMAND, "export", "--quiet", "--to", output]
            environment = {**os.environ, **given, **_catalog(folder), "PYTHONPATH": str(PROJECT)}
            subprocess.run(command, cwd=folder, env=environment, check=True)


def read(reading: Reading, folder: Path) -> Found:
    """Read an output in a folder, in a process of its own."""
    engine = reading.engine
    day = f", {engine.day}" if reading.output in HAVE_DAYS else ""
    is_query = engine is CHDB  # it reads what a query names
    code = f"""
import importlib.metadata, json, os
{engine.setup}
events = {repr(reading.read) if is_query else reading.read}
found = {{
    "version": importlib.metadata.version({engine.package!r}),
    "columns": {engine.columns},
    "rows": {engine.rows.replace("{day}", day)},
    "exact": {engine.number.replace("{of}", reading.exact)},
    "rounded": {engine.number.replace("{of}", reading.rounded) if reading.rounded else None},
}}
print(json.dumps(found), flush=True)
os._exit(0)
"""
    # At the end of Python, deltalake sometimes aborts; what it has read is right.
    code = code.replace(ABSOLUTE, f"{folder}/")
    printed = run(reading.environment or engine.environment, code, folder)
    return msgspec.json.decode(printed.splitlines()[-1], type=Found)


def run(environment: str, code: str, folder: Path) -> str:
    """Return what a program prints."""
    if environment == SPARK.environment and shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none")
    script = folder / "read.py"
    script.write_text(code)
    # Spark and its workers talk to each other on this machine only.
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": ""}
    variables = _catalog(folder) | local
    done = run_python(environment, [script], folder=folder, environment=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _catalog(folder: Path) -> dict[str, str]:
    """The variables for PyIceberg."""
    return {
        "PYICEBERG_CATALOG__PROD__URI": f"sqlite:///{folder}/catalog.db",
        "PYICEBERG_CATALOG__PROD__WAREHOUSE": f"file://{folder}/warehouse",
    }


def cells(reading: Reading, found: Found) -> list[str]:
    """A row of the table, with the name and the version of the engine in its first two cells."""
    others = {type_ for name, type_ in found.columns.items() if name not in {"occurred_at", "day"}}
    number = _code(reading.exact) + (f"; not {_code(reading.rounded)}" if reading.rounded else "")
    return [
        reading.engine.name,
        found.version,
        _code(reading.read),
        found.columns["occurred_at"],
        found.columns.get("day", ""),
        ", ".join(sorted(others)),
        number,
        reading.beware,
    ]


def _code(text: str) -> str:
    return f"`{text}`"


def table(rows: Iterable[Sequence[str]]) -> str:
    """The table; versions of an engine with the same row share it."""
    head = ["engine", "read it with", "`occurred_at`", "`day`", "all other columns"]
    head += ["an integer of 23 digits in `action_details`", "beware"]
    lines = [head, ["---"] * len(head)]
    for (name, *rest), same in groupby(rows, key=lambda row: (row[0], *row[2:])):
        lines.append([f"{name} {', '.join(row[1] for row in same)}", *rest])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Update the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        export_all(folder)
        rows = [cells(reading, read(reading, folder)) for reading in READINGS]
    PAGE.write_text(generator().with_part(PAGE.read_text(), PART, table(rows)))


if __name__ == "__main__":
    main()
