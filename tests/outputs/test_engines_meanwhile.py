"""Query engines read a folder while an export runs, and after one was killed."""

import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.exported import exported
from tests.cli.test_reading import TABLES, run
from tests.outputs.test_readers_meanwhile import (
    NEW,
    OLD,
    half_committed,
    many_files,  # noqa: F401 - a fixture
    written,
)

pytestmark = pytest.mark.integrations


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("engine", ["duckdb", "polars", "pandas", "pyarrow", "pyspark", "chdb"])
def test_the_engine_reads_the_complete_files(
    engine: str, is_killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polars refuses a folder in which any file has another ending, hidden or not."""
    written(tmp_path, OLD).commit({"until": "then"})
    code = TABLES[engine].replace('"events/*/*.parquet"', '"events/"')  # as strict as it can be
    if engine == "duckdb":
        code = TABLES[engine]  # it needs the pattern
    with ExitStack() as stack:
        if is_killed:
            half_committed(tmp_path, NEW, monkeypatch)
        else:
            stack.callback(written(tmp_path, NEW).discard)

        printed = run(engine, code, tmp_path)

    days = Counter(event["occurredAt"][:10] for event in exported(tmp_path / "events"))
    found = re.findall(r"\b(20\d\d-\d\d-\d\d)\b\D+?(\d+)", printed)
    assert {day: int(count) for day, count in found} == days
