"""A clock that tests of waits share."""

import pytest


class SimulatedTime:
    """A clock that only waits advance: each wait returns at once and is recorded."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float | None] = []

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float | None = None) -> bool:
        assert seconds is not None, "it would wait for another thread forever"
        self.waits.append(seconds)
        self.now += seconds
        return False


@pytest.fixture
def simulated_time() -> SimulatedTime:
    return SimulatedTime()
