#!/usr/bin/env bash
# Spark 4.3.0 (pyspark; needs Java 17 or newer), Python data sources with `pushFilters`: a DataFrame
# that was once queried with a filter keeps it. A later query without a filter that can be pushed,
# on the same DataFrame, silently gets only the rows that the filter let through. So push filters
# only if each DataFrame is loaded for one query.
#
# Seen: [10, 3, 3], for all rows, those with n >= 7, and all rows again
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyspark==4.3.0 pyarrow==26.0.1

PYSPARK_PYTHON="$folder/venv/bin/python" SPARK_LOCAL_IP=127.0.0.1 venv/bin/python - 2> log <<'END'
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, GreaterThanOrEqual, InputPartition


class Reader(DataSourceReader):
    first = 0

    def pushFilters(self, filters):
        for each in filters:
            if isinstance(each, GreaterThanOrEqual):
                self.first = each.value
        return filters

    def partitions(self):
        return [InputPartition(self.first)]

    def read(self, partition):
        for n in range(partition.value, 10):
            yield (n,)


class Numbers(DataSource):
    @classmethod
    def name(cls):
        return "numbers"

    def schema(self):
        return "n INT"

    def reader(self, schema):
        return Reader()


builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.python.filterPushdown.enabled", "true").getOrCreate()
spark.dataSource.register(Numbers)
frame = spark.read.format("numbers").load()
found = [frame.count(), frame.where("n >= 7").count(), frame.count()]
print(found)
raise SystemExit(found != [10, 3, 3])
END
