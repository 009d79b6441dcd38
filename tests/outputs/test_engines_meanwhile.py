"""Query engines read a folder while an export runs, and after one was killed."""

from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.engines import FOLDER, READINGS, Reading, read
from tests.cli.exported import exported
from tests.outputs.test_readers_meanwhile import (
    NEW,
    OLD,
    half_committed,
    many_files,  # noqa: F401 - a fixture
    written,
)

pytestmark = pytest.mark.integrations


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize(
    "reading",
    [each for each in READINGS if each.output == FOLDER and not each.environment],
    ids=str,
)
def test_the_engine_reads_the_complete_files(
    reading: Reading, is_killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polars refuses a folder in which any file has another ending, hidden or not."""
    written(tmp_path, OLD).commit({"until": "then"})
    strict = replace(reading, read=reading.read.replace('"events/*/*.parquet"', '"events/"'))
    with ExitStack() as stack:
        if is_killed:
            half_committed(tmp_path, NEW, monkeypatch)
        else:
            stack.callback(written(tmp_path, NEW).discard)

        rows = read(strict, tmp_path).rows

    days = Counter(event["occurredAt"][:10] for event in exported(tmp_path / "events"))
    assert Counter(row[-1] for row in rows) == days
