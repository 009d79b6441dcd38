"""Measures the Spark data source by its partitions, and updates the table of `docs/scale.md`.

It needs Java and the environment of `make test-spark`: `make bench-spark`.
"""

import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.sandbox import start_sandbox

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
EVENTS: Final = 200_000
MILLISECONDS: Final = 100
PARTITIONS: Final = (1, 2, 4, 8)


def session() -> Any:
    """A session with a thread for each of eight partitions."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from tap_audit_events.spark import AuditEventsDataSource  # noqa: PLC0415

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{max(PARTITIONS)}]")
    builder = builder.config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(AuditEventsDataSource)
    return spark


def rows(spark: Any, folder: Path) -> list[list[str]]:
    """Read the same history with each number of partitions, and with `AuditEvents`."""
    from tap_audit_events import AuditEvents  # noqa: PLC0415

    with start_sandbox(EVENTS, MILLISECONDS) as sandbox:
        token = folder / "token"
        token.write_text(sandbox.settings.pop("access_token"))
        token.chmod(0o600)
        fixed = {**sandbox.settings, "access_token_file": str(token)}
        found = []

        def add(label: str, count: int, started: float, before: int) -> None:
            seconds = time.perf_counter() - started
            requests = sandbox.requests() - before
            rates = f"{count / seconds:,.0f}", str(requests), f"{requests / seconds:.1f}"
            found.append([label, f"{seconds:.1f}", *rates])

        def read(partitions: int) -> int:
            reader = spark.read.format("audit_events").options(**fixed, partitions=partitions)
            types = reader.load().groupBy("action_type").count().collect()
            return sum(row["count"] for row in types)

        read(max(PARTITIONS))  # starts a Python process for each thread
        for each in PARTITIONS:
            before, started = sandbox.requests(), time.perf_counter()
            label = f"Spark, {each} partition{'s' * (each > 1)}"
            add(label, read(each), started, before)
        before, started = sandbox.requests(), time.perf_counter()
        events = AuditEvents(**fixed, concurrency=max(PARTITIONS))
        count = sum(batch.num_rows for batch in events.arrow())
        add(f"`AuditEvents.arrow`, {max(PARTITIONS)} requests in flight", count, started, before)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = rows(session(), Path(folder))
    head = [f"{EVENTS:,} events", "s", "events/s", "requests", "requests/s"]
    lines = [head, ["---", *["---:"] * 4], *found]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    pattern = r"(<!-- made: spark -->\n).*?(<!-- end -->)"
    text = re.sub(pattern, rf"\g<1>{table}\g<2>", PAGE.read_text(), count=1, flags=re.DOTALL)
    PAGE.write_text(text)
    sys.stdout.write(table)


if __name__ == "__main__":
    main()
