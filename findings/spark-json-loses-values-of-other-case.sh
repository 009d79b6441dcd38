#!/usr/bin/env bash
# Spark 4.3.0 (pyspark; needs Java 17 or newer): keys of a nested object that differ only in case
# become one field when the schema is inferred, and the values of the other key become null, without an
# error. At the top level, the same keys are an error. `spark.sql.caseSensitive` avoids both.
#
# Seen: [('1', 'eu'), ('2', None)], and COLUMN_ALREADY_EXISTS at the top level
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyspark==4.3.0

printf '%s\n' '{"id": "1", "details": {"Region": "eu"}}' '{"id": "2", "details": {"region": "us"}}' > nested.jsonl
printf '%s\n' '{"id": "1", "Region": "eu"}' '{"id": "2", "region": "us"}' > top.jsonl
SPARK_LOCAL_IP=127.0.0.1 venv/bin/python - 2> log <<'END'
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.read.json("nested.jsonl").select("id", "details.region").collect()
found = [tuple(row) for row in rows]
print(found)
try:
    spark.read.json("top.jsonl")
except AnalysisException as error:
    print(error)
    raise SystemExit(found != [("1", "eu"), ("2", None)] or "COLUMN_ALREADY_EXISTS" not in str(error))
raise SystemExit("the top level was read")
END
