"""What an output keeps in memory depends on its events, not on the pages that they came in."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.exported import expected, exported, history
from tests.cli.failing import open_incremental
from tests.outputs.test_day_folder import page_of

MANY = history(1500)


@pytest.mark.parametrize("to", ["events.parquet", "events.duckdb", "events/"])
def test_pages_of_one_event_take_no_more_memory_than_large_ones(to: str, tmp_path: Path) -> None:
    """Each Arrow batch takes memory of its own. JSON Lines keep nothing."""
    output = open_incremental(tmp_path, to)
    output.begin()
    before = pa.total_allocated_bytes()

    for event in MANY:
        output.write(page_of([event]))

    assert pa.total_allocated_bytes() - before < 700 * len(MANY)
    output.commit({"until": "now"})
    assert exported(tmp_path / to) == expected(MANY)
