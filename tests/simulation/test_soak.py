"""An hour of simulated time: nothing lost, nothing twice, and nothing grows."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.soak import Soak

MINUTES = 60.0


@pytest.fixture(autouse=True)
def _traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.long
def test_an_hour_of_trouble_leaves_nothing_behind(tmp_path: Path) -> None:
    """Rate limit, resets, hangs, expired cursors, rotating token, late events: all arrives once.

    Memory, threads and open files are as they were after the first ten minutes.
    """
    soak = Soak(tmp_path)
    with soak.started() as base_url:
        soak.play(base_url, MINUTES / 6)
        before = soak.footprint()
        soak.play(base_url, MINUTES * 5 / 6)
        began = int(soak.clock())
        soak.run(base_url)
        after = soak.footprint()
    assert soak.runs > 100
    assert soak.tokens > 5
    assert len(soak.sink.ids) == began + soak.late  # one event a second, and those that came late
    assert set(soak.sink.ids.values()) == {1}
    assert after.threads <= before.threads
    assert after.files <= before.files + 1
    # Each token that there was stays masked; ids of the lookback and free lists of Python vary.
    assert after.kilobytes <= before.kilobytes + 100 + 16 * soak.tokens  # a pattern for each
