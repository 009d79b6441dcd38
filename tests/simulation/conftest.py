"""A fixture of all tests of the simulation."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Disable logging, as histories log thousands of lines."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
