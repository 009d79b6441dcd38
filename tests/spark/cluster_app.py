"""A program for a Spark cluster: a read, then a stream into Parquet. Options come as JSON."""

import json
import sys

# ruff: noqa: T201 - the test reads what it prints
from pyspark.sql import SparkSession

from tap_audit_events.spark import AuditEventsDataSource

master, folder, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
spark = (
    SparkSession.builder.master(master)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.compress", "false")
    .config("spark.eventLog.dir", f"{folder}/log")
    .getOrCreate()
)
spark.dataSource.register(AuditEventsDataSource)
frame = spark.read.format("audit_events").options(**options).load()
frame.explain(extended=True)
print("read", frame.select("id").distinct().count(), frame.count(), flush=True)
stream = spark.readStream.format("audit_events").options(**options).load()
writer = stream.writeStream.format("parquet").trigger(availableNow=True)
writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
writer.start(f"{folder}/events").awaitTermination()
print("streamed", flush=True)
