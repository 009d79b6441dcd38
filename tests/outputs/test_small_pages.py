"""What an output keeps in memory depends on its events, not on the pages that they came in."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.exported import expected, exported, history
from tests.outputs.opened import begun, page_of

MANY = history(1500)


@pytest.mark.parametrize("to", ["events.parquet", "events.duckdb", "events/"])
def test_pages_of_one_event_take_no_more_memory_than_large_ones(to: str, tmp_path: Path) -> None:
    """Each Arrow batch takes memory of its own. JSON Lines keep nothing."""
    output = begun(tmp_path, to)
    before = pa.total_allocated_bytes()

    for event in MANY:
        output.write(page_of([event]))

    assert pa.total_allocated_bytes() - before < 700 * len(MANY)
    output.commit({"until": "now"})
    assert exported(tmp_path / to) == expected(MANY)
