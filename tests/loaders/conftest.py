"""The servers that loaders write to: one of each for a test process."""

from collections.abc import Iterator

import pytest

from tests.cli.conftest import command as command  # noqa: PLC0414 - a fixture
from tests.loaders.clouds import TargetBigquery, TargetElasticsearch
from tests.loaders.postgres import PostgresLoader
from tests.loaders.postgres_server import PostgresServer
from tests.loaders.stand_ins import BigQueryHandler, ElasticsearchHandler, stand_in


@pytest.fixture(scope="session")
def servers(postgres: PostgresServer) -> Iterator[None]:
    """PostgreSQL, and stand-ins for Elasticsearch and BigQuery."""
    PostgresLoader.server = postgres
    with (
        stand_in(ElasticsearchHandler) as TargetElasticsearch.server,
        stand_in(BigQueryHandler) as TargetBigquery.server,
    ):
        yield
