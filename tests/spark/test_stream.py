"""A stream brings each event once, whatever ends it, and whatever changes between its runs."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.exported import history
from tests.spark.conftest import Options

NOW = datetime.now(UTC).replace(microsecond=0)
OTHER = "7a1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47"


class Query:
    """A stream into Parquet, which a test starts again and again from its checkpoint."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark, self._folder = spark, folder

    def start(self, options: dict[str, str]) -> Any:
        stream = self._spark.readStream.format("audit_events").options(**options).load()
        writer = stream.writeStream.format("parquet").trigger(availableNow=True)
        checkpoint = str(self._folder / "checkpoint")
        return writer.option("checkpointLocation", checkpoint).start(str(self._folder / "events"))

    def run(self, options: dict[str, str]) -> list[int]:
        """Run until everything that is there now was read; the rows of each batch."""
        query = self.start(options)
        query.awaitTermination()
        return [each.numInputRows for each in query.recentProgress]

    def ids(self) -> list[str]:
        if not (self._folder / "events").exists():
            return []
        frame = self._spark.read.parquet(str(self._folder / "events"))
        return sorted(f"{row['organization_id'][:2]} {row['id']}" for row in frame.collect())


@pytest.fixture
def query(spark: Any, tmp_path: Path) -> Iterator[Query]:
    yield Query(spark, tmp_path)
    for each in spark.streams.active:
        each.stop()


def ids(count: int, organization: str = "6f") -> list[str]:
    return [f"{organization} {n:05}" for n in range(count)]


def recent(count: int, start: int, seconds_ago: int) -> list[dict[str, Any]]:
    """Events of one moment so many seconds ago."""
    at = f"{datetime.now(UTC) - timedelta(seconds=seconds_ago):%Y-%m-%dT%H:%M:%SZ}"
    return [an_event(id=f"{n:05}", at=at) for n in range(start, start + count)]


def test_each_run_brings_what_is_new_and_a_quiet_one_nothing(
    query: Query, service: Service, options: Options
) -> None:
    service.add(history(100))
    assert sum(query.run(options(end_date="2024-05-06"))) == 40
    assert sum(query.run(options(end_date="2024-05-06"))) == 0
    assert sum(query.run(options(max_events_per_trigger="1000"))) == 60
    assert query.ids() == ids(100)


def test_late_events_within_the_lookback_are_not_missed(
    query: Query, service: Service, options: Options
) -> None:
    """They lie after the end of the batch, so a later one brings them."""
    service.add(recent(5, 0, seconds_ago=100))
    assert sum(query.run(options())) == 0
    service.add(recent(5, 5, seconds_ago=200))
    assert sum(query.run(options(lookback_seconds="0"))) == 10


def test_a_long_history_comes_in_batches_of_limited_size(
    query: Query, service: Service, options: Options
) -> None:
    """Few requests more than those of a read, and available-now does not stop early."""
    service.add_generated(5000, 30, 1, NOW - timedelta(hours=1))
    batches = query.run(options(max_events_per_trigger="400", page_size="100", partitions="4"))

    assert len(batches) >= 5
    assert max(batches) < 2500
    assert len(set(query.ids())) == len(query.ids()) == 5000
    assert len(service.requests) <= 1.2 * (50 + 2 * 4 + 10)


def test_an_event_at_the_end_of_a_batch_or_a_task_comes_once(
    query: Query, service: Service, options: Options
) -> None:
    """There is an event in each second, so every cut meets one."""
    first = datetime(2024, 5, 6, tzinfo=UTC)
    service.add(
        an_event(id=f"{n:05}", at=f"{first + timedelta(seconds=n):%Y-%m-%dT%H:%M:%SZ}")
        for n in range(240)
    )
    batches = query.run(options(max_events_per_trigger="80", page_size="10", partitions="2"))
    assert len(batches) >= 2
    assert query.ids() == ids(240)


@pytest.mark.parametrize("start", ["2024-05-06T12:00:00Z", "latest", "earliest"])
def test_a_stream_starts_where_the_option_says(
    start: str, query: Query, service: Service, options: Options
) -> None:
    service.add(history(100))
    query.run(options(startingFrom=start))
    expected = {"latest": [], "earliest": ids(100)}
    after = [f"6f {each['id']}" for each in history(100) if each["occurredAt"] >= start]
    assert query.ids() == expected.get(start, after)


def test_a_query_that_is_stopped_at_any_moment_loses_and_repeats_nothing(
    query: Query, service: Service, options: Options
) -> None:
    """Twenty times, between batches or in the middle of one."""
    service.add(history(600))
    given = options(max_events_per_trigger="40", page_size="20", partitions="2")
    rng = random.Random(3)
    for _ in range(20):
        running = query.start(given)
        running.awaitTermination(rng.random() * 2.5)
        running.stop()
    query.run(given)
    assert query.ids() == ids(600)


def test_a_query_that_fails_names_the_error_and_continues_after_a_restart(
    query: Query, service: Service, options: Options, token_file: Path
) -> None:
    service.add(history(100))
    given = options(page_size="20", max_retries="0")
    token = token_file.read_text()
    token_file.write_text("acme_pat_wrong")
    with pytest.raises(StreamingQueryException, match="AE-401"):
        query.run(given)
    token_file.write_text(token)
    failing = len(service.requests) + 5
    service.add_faults([f"status:code=500@{failing}"])
    with pytest.raises(StreamingQueryException, match="AE-500"):
        query.run(given)
    query.run(given)
    assert query.ids() == ids(100)


def test_organizations_come_and_go(query: Query, service: Service, serve_several: Any) -> None:
    """A new one is read from its beginning; one that comes back continues where it was."""
    other = Service(organization_id=OTHER)
    fixed = serve_several(service, other)

    def run(*names: str) -> None:
        chosen = [{"organization_id": name} for name in names]
        query.run(fixed | {"organizations": json.dumps(chosen)})

    service.add(history(60))
    other.add(history(70))
    fixed["end_date"] = "2024-05-06T12:00:00Z"
    run(service.organization_id)
    run(service.organization_id, OTHER)
    assert query.ids() == sorted(ids(22) + ids(22, "7a"))
    fixed.pop("end_date")
    run(OTHER)
    run(OTHER, service.organization_id)
    assert query.ids() == sorted(ids(60) + ids(70, "7a"))


def test_offsets_are_instants(
    query: Query, service: Service, options: Options, tmp_path: Path
) -> None:
    service.add(history(20))
    query.run(options())
    offset = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[-1]
    ((name, instant),) = json.loads(offset).items()
    assert name == service.organization_id
    assert datetime.fromisoformat(instant) < datetime.now(UTC) - timedelta(seconds=300)
