"""One Spark session for all tests, and a service that it reads."""

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Service, serve
from tap_audit_events.sandbox.several import SeveralServices

collect_ignore_glob: list[str] = []
if importlib.util.find_spec("pyspark") is None:  # in the environments of all other tests
    collect_ignore_glob.append("test_*.py")

Options = Callable[..., dict[str, str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for each in items:
        if Path(__file__).parent in each.path.parents:
            each.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session with the data source and two threads, each with a Python process."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from tap_audit_events.spark import AuditEventsDataSource  # noqa: PLC0415

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["TZ"] = "America/New_York"  # the zone must not matter
    time.tzset()
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    session.dataSource.register(AuditEventsDataSource)
    yield session
    session.stop()


@pytest.fixture
def token_file(tmp_path: Path, service: Service) -> Path:
    path = tmp_path / "token"
    path.write_text(service.access_token)
    path.chmod(0o600)
    return path


@pytest.fixture
def options(service: Service, token_file: Path) -> Iterator[Options]:
    """Options that reach the service; a request outside of the interface fails the test."""
    with serve(service) as server:
        fixed = {
            "base_url": server.base_url,
            "organization_id": service.organization_id,
            "access_token_file": str(token_file),
        }
        yield lambda **more: fixed | more
    assert service.violations == []


@pytest.fixture
def serve_several(token_file: Path) -> Iterator[Callable[..., dict[str, str]]]:
    """Options, without `organizations`, that reach several services behind one port."""
    with ExitStack() as stack:

        def start(*services: Service) -> dict[str, str]:
            server = stack.enter_context(serve(SeveralServices(services)))
            return {"base_url": server.base_url, "access_token_file": str(token_file)}

        yield start
