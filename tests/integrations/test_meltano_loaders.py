"""The loaders of `docs/meltano.md`, installed and run by the real Meltano as the page says."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tap_audit_events.sandbox import generate
from tests.integrations.pipeline import NOON, PROJECT, Pipeline, a_pipeline, borrow_plugins
from tests.loaders.postgres_server import USER, postgres_server
from tests.project.pages import sections, shell

pytestmark = [pytest.mark.integrations, pytest.mark.timeout(1200)]

SECTION = sections("meltano.md")["Load into DuckDB, PostgreSQL or Snowflake"]
EVENTS = generate(60, days=40, seed=7, until=NOON)


@pytest.fixture
def pipeline(tmp_path: Path) -> Iterator[Pipeline]:
    """A project with the tap and the files of the page, but with no loader."""
    borrow_plugins(tmp_path)
    SECTION.write_files(tmp_path)
    (tmp_path / ".meltano" / "loaders").unlink()
    project = yaml.safe_load((tmp_path / "meltano.yml").read_text())
    del project["plugins"]["loaders"]
    (tmp_path / "meltano.yml").write_text(yaml.safe_dump(project, sort_keys=False))
    with a_pipeline(tmp_path) as started:
        started.service.add(EVENTS)
        yield started


def follow(pipeline: Pipeline, loader: str, file: str, pins: str, **environment: str) -> None:
    """Run the commands of the page with another loader in the place of target-postgres."""
    variables = pipeline.environment | environment
    copied = shutil.copy(PROJECT / "requirements" / pins, pipeline.project)
    variables["UV_CONSTRAINT"] = str(copied)  # without a space, at which uv would divide it
    for command in SECTION.commands:
        ours = command.replace("target-postgres", loader).replace("postgres.yml", file)
        done = shell(ours, pipeline.project, variables)
        assert done.returncode == 0, done.stdout + done.stderr


def test_events_are_loaded_into_duckdb(pipeline: Pipeline) -> None:
    follow(pipeline, "target-duckdb", "duckdb.yml", "target-duckdb.txt")

    assert [row["id"] for row in pipeline.rows()] == [event["id"] for event in EVENTS]


def test_events_are_loaded_into_postgresql(pipeline: Pipeline) -> None:
    """The password is in the environment, and in no file of the project."""
    config = pipeline.project / "postgres.yml"
    with (
        tempfile.TemporaryDirectory() as folder,  # not below pytest's: see the server
        postgres_server(Path(folder)) as server,
    ):
        server.create_database("warehouse")
        text = config.read_text().replace("db.example.com", "127.0.0.1")
        text = text.replace("5432", str(server.port)).replace("user: loader", f"user: {USER}")
        config.write_text(text)
        pins = "meltanolabs-target-postgres.txt"
        follow(pipeline, "target-postgres", "postgres.yml", pins, PGPASSWORD=server.password)

        found = server.query("warehouse", "SELECT id FROM audit.audit_events ORDER BY 1")
    assert found == sorted(event["id"] for event in EVENTS)


def test_meltano_accepts_the_loader_for_snowflake(pipeline: Pipeline) -> None:
    """It is not installed here, as there is no account to load into."""
    with (pipeline.project / "meltano.yml").open("a") as file:
        file.write("include_paths: [snowflake.yml]\n")

    listed = pipeline.meltano("config", "list", "target-snowflake")

    assert listed.returncode == 0, listed.stderr
    assert "private_key_path" in listed.stdout
