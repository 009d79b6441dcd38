"""An hour of simulated time: no event is lost or repeated, and nothing grows."""

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
def test_an_hour_of_faults_loses_no_event_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Each event arrives once, whatever rate limits, faults, new tokens and late events there are.

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
    assert len(soak.sink.ids) == began + soak.late  # one event a second, and the late ones
    assert set(soak.sink.ids.values()) == {1}
    assert after.threads <= before.threads
    assert after.files <= before.files + 1
    # Every token stays masked; the ids of the lookback and the free lists of Python vary.
    assert after.kilobytes <= before.kilobytes + 100 + 16 * soak.tokens  # one pattern each
