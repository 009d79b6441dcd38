"""A read brings every event once, with few requests, whatever its partitions and filters."""

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException

from tap_audit_events import AuditEvents
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.exported import HOSTILE, history
from tests.spark.conftest import Options

UNTIL = datetime.now(UTC).replace(microsecond=0)
OTHER = "7a1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47"
THIRD = "8b1d4c1e-7f0b-4f3a-9d35-0c8a5b1e2d47"


def rows_of(spark: Any, **options: str) -> list[dict[str, Any]]:
    """The rows of a read, in the order of `AuditEvents`."""
    frame = spark.read.format("audit_events").options(**options).load()
    rows = [row.asDict() for row in frame.collect()]
    return sorted(rows, key=lambda row: (row["occurred_at_text"].rstrip("Z"), row["id"]))


def expected(options: dict[str, str]) -> list[dict[str, Any]]:
    """The same from Python, with times as Spark returns them."""
    settings: dict[str, Any] = dict(options)
    rows = AuditEvents(**settings).arrow().read_all().to_pylist()
    local = [
        row | {"occurred_at": row["occurred_at"].astimezone().replace(tzinfo=None)} for row in rows
    ]
    return sorted(local, key=lambda row: (row["occurred_at_text"].rstrip("Z"), row["id"]))


@pytest.mark.parametrize("partitions", ["1", "5"])
def test_every_value_is_that_of_the_python_api(
    partitions: str, spark: Any, service: Service, options: Options
) -> None:
    """Ties, nine digits, unknown fields, other types, huge numbers and empty days included."""
    service.add(HOSTILE + history(60, start=100))
    service.add([an_event(id="late", at="2024-06-30T00:00:00Z")])

    assert rows_of(spark, **options(partitions=partitions)) == expected(options())


def test_a_long_history_is_read_in_parts_with_few_requests(
    spark: Any, service: Service, options: Options
) -> None:
    """At most 1.25 times the requests of a sequential read, and two for each partition."""
    service.add_generated(6000, 30, 1, UNTIL)
    given = options(page_size="100", partitions="4")
    frame = spark.read.format("audit_events").options(**given).load()

    assert frame.rdd.getNumPartitions() == 4
    service.requests.clear()
    assert len({row["id"] for row in frame.collect()}) == 6000
    assert len(service.requests) <= 1.25 * 60 + 2 * 4


def test_a_quiet_decade_costs_no_requests(spark: Any, service: Service, options: Options) -> None:
    service.add([an_event(id="old", at="2014-01-01T00:00:00Z")])
    service.add_generated(2000, 2, 1, UNTIL)

    assert len(rows_of(spark, **options(page_size="100"))) == 2001
    assert len(service.requests) <= 1.25 * 21 + 2 * 8


def test_several_organizations_have_parts_of_their_own(
    spark: Any, service: Service, serve_several: Any
) -> None:
    services = [service, Service(organization_id=OTHER), Service(organization_id=THIRD)]
    services[0].add_generated(900, 10, 1, UNTIL)
    services[1].add(history(3))
    given = serve_several(*services)
    given["organizations"] = json.dumps(
        [{"organization_id": each.organization_id} for each in services]
    )

    rows = rows_of(spark, **given, page_size="50", partitions="4")

    found = {(row["organization_id"], row["id"]) for row in rows}
    assert len(rows) == len(found) == 903
    assert {name for name, _ in found} == {each.organization_id for each in services[:2]}


def test_the_filters_of_a_query_become_parameters_of_the_requests(
    spark: Any, service: Service, options: Options
) -> None:
    service.add(history(100))
    frame = spark.read.format("audit_events").options(**options(push_filters="true")).load()
    service.requests.clear()

    query = "occurred_at > '2024-05-07 00:00:00' AND occurred_at <= '2024-05-07 12:00:00'"
    found = frame.where(f"{query} AND action_type IN ('workspace_create', 'x')").collect()

    assert {f"{row['occurred_at_text']:.10}" for row in found} == {"2024-05-07"}
    for each in service.requests:
        assert each.params["startTime"] >= "2024-05-07T00:00:00Z"
        assert each.params["endTime"] <= "2024-05-07T12:00:01Z"
        assert each.params["actionTypes"] == "workspace_create,x"


def test_excluded_types_are_in_no_row_and_no_request(
    spark: Any, service: Service, options: Options
) -> None:
    service.add([*history(3), *(an_event(id=each, action_type=each) for each in ("a", "b"))])
    given = options(exclude_action_types='["a"]', push_filters="true")
    frame = spark.read.format("audit_events").options(**given).load()

    assert {row["action_type"] for row in frame.collect()} == {"workspace_create", "b"}
    service.requests.clear()
    assert [row["id"] for row in frame.where("action_type IN ('a', 'b')").collect()] == ["b"]
    assert {each.params["actionTypes"] for each in service.requests} == {"b"}
    service.requests.clear()
    assert frame.where("action_type = 'a'").collect() == []
    assert service.requests == []


def test_random_filters_bring_what_an_unfiltered_read_has(
    spark: Any, service: Service, options: Options, tmp_path: Path
) -> None:
    """Bounds between, at and beyond the microseconds of events; types, organizations, others."""
    rng = random.Random(1)
    moments = [f"2024-05-06 00:00:0{n}.{digits}" for n in range(4) for digits in ("0", "123456")]
    times = [f"{each.replace(' ', 'T')}{more}Z" for each in moments for more in ("", "7", "999")]
    service.add(
        an_event(id=f"{n}", at=rng.choice(times), action={"type": rng.choice("abc"), "details": {}})
        for n in range(60)
    )
    reader = spark.read.format("audit_events").options(**options(push_filters="true"))
    frame = reader.load()
    frame.write.parquet(str(tmp_path / "everything"))
    everything = spark.read.parquet(str(tmp_path / "everything")).cache()

    def condition() -> str:
        moment = f"'{rng.choice(moments)}{rng.choice(['', '1'])}'"
        return rng.choice([
            f"occurred_at {rng.choice(['<', '<=', '>', '>=', '=', '<=>', '!='])} {moment}",
            f"occurred_at IN ({moment}, '{rng.choice(moments)}')",
            f"action_type {rng.choice(['=', '!=', '<', '<=>'])} '{rng.choice('abcd')}'",
            f"action_type IN ('{rng.choice('abcd')}', '{rng.choice('ab')}')",
            f"organization_id {rng.choice(['=', '!='])} '{service.organization_id}'",
            "action_type IS NOT NULL", "actor_email IS NULL", f"id LIKE '{rng.randrange(6)}%'",
        ])  # fmt: skip

    for _ in range(30):
        parts = [f"{rng.choice(['', '', 'NOT '])}({condition()})" for _ in range(rng.randint(1, 3))]
        text = rng.choice([" AND ", " AND ", " OR "]).join(parts)
        found = sorted(row["id"] for row in reader.load().where(text).collect())
        assert found == sorted(row["id"] for row in everything.where(text).collect()), text


def test_some_columns_are_read_if_the_schema_names_them(
    spark: Any, service: Service, options: Options
) -> None:
    service.add(HOSTILE)
    reader = spark.read.format("audit_events").schema("id STRING, occurred_at TIMESTAMP")

    found = reader.options(**options()).load().collect()

    assert sorted(row["id"] for row in found) == ["1", "2", "3", "4", "5", "6"]
    assert found[0].asDict().keys() == {"id", "occurred_at"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"page_size": "0"}, "AE-SETTINGS: page_size is 0"),
        ({"partitions": "none"}, "AE-SETTINGS: partitions is 'none'"),
        ({"startingFrom": "soon"}, "AE-SETTINGS: startingFrom is not"),
        ({"page_sise": "1"}, "did you mean page_size?"),
        ({"access_token": "acme_pat_secret"}, "AE-SETTINGS: access_token cannot be an option"),
        (
            {"organizations": '[{"organization_id": "x", "access_token": "acme_pat_secret"}]'},
            "organizations cannot have an access_token",
        ),
    ],
)
def test_wrong_options_are_named(
    given: dict[str, str], message: str, spark: Any, options: Options
) -> None:
    with pytest.raises(AnalysisException) as caught:
        rows_of(spark, **options(**given))
    assert message in str(caught.value)
    assert "acme_pat_secret" not in str(caught.value)


def test_an_error_of_the_service_ends_the_query_and_names_itself(
    spark: Any, service: Service, options: Options
) -> None:
    service.add(history(200))
    service.add_faults(["status:code=403@1-"])
    with pytest.raises((AnalysisException, PythonException), match="AE-403"):
        rows_of(spark, **options(page_size="10", partitions="1"))


def test_a_rate_limit_is_waited_out(spark: Any, service: Service, options: Options) -> None:
    service.add(history(200))
    service.add_faults(["status:code=429,retry-after=1@3"])
    assert len(rows_of(spark, **options(page_size="10"))) == 200


def test_a_read_may_serve_several_queries(spark: Any, service: Service, options: Options) -> None:
    """By default no filter is pushed, as Spark would apply it to later queries too."""
    service.add(history(10))
    frame = spark.read.format("audit_events").options(**options()).load()

    assert frame.where("occurred_at >= '2024-05-06 06:00:00'").count() == 0
    assert frame.count() == 10


def test_filters_are_pushed_only_if_spark_and_the_option_allow_it(
    spark: Any, service: Service, options: Options
) -> None:
    service.add(history(10))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert len(rows_of(spark, **options())) == 10
        with pytest.raises(AnalysisException, match=r"filterPushdown\.enabled"):
            rows_of(spark, **options(push_filters="true"))
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_now_is_that_of_the_driver(spark: Any, service: Service, options: Options) -> None:
    """A range ends where it was planned, also if an executor's clock is behind."""
    service.add(
        [an_event(id="now", at=f"{datetime.now(UTC) - timedelta(seconds=2):%Y-%m-%dT%H:%M:%SZ}")]
    )
    assert len(rows_of(spark, **options())) == 1
