"""A receiver for each test, and the command that ships to it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.conftest import command as command  # noqa: PLC0414 - a fixture
from tests.shipping.receiver import Receiver


@pytest.fixture
def receiver(settings: dict[str, Any]) -> Iterator[Receiver]:
    """Receives JSON lines; it fails the test if it is sent the service's access token."""
    with Receiver() as receiver:
        receiver.secrets = (settings["access_token"],)
        yield receiver
