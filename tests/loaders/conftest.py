"""The servers that loaders write to: one of each for a test process."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loaders.clouds import TargetBigquery, TargetElasticsearch
from tests.loaders.postgres import PostgresLoader
from tests.loaders.postgres_server import postgres_server
from tests.loaders.stand_ins import BigQueryHandler, ElasticsearchHandler, stand_in


@pytest.fixture(scope="session")
def servers() -> Iterator[None]:
    """PostgreSQL, and stand-ins for Elasticsearch and BigQuery."""
    with (
        # Not below pytest's own folder, which other users may not enter.
        tempfile.TemporaryDirectory() as folder,
        postgres_server(Path(folder)) as PostgresLoader.server,
        stand_in(ElasticsearchHandler) as TargetElasticsearch.server,
        stand_in(BigQueryHandler) as TargetBigquery.server,
    ):
        yield
