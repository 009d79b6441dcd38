#!/usr/bin/env bash
# PyIceberg 0.12.0: the batches of `to_arrow_batch_reader`, which is for results larger than the
# memory, are read by threads that do not wait for the reader. Soon after the first batch was read,
# the rows of all files are in memory. To read one file at a time, give the files of
# `scan.plan_files()` to `ArrowScan` one by one.
#
# Seen: after one batch of 8,125 bytes of a table with 40 such files, 325,120 bytes are in memory
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'pyiceberg[pyarrow,sql-sqlite]==0.12.0'

venv/bin/python - <<'END'
import time

import pyarrow
from pyiceberg.catalog.sql import SqlCatalog

catalog = SqlCatalog("local", uri="sqlite:///catalog.db", warehouse="warehouse")
catalog.create_namespace("audit")
rows = pyarrow.table({"number": [1.0] * 1000})
table = catalog.create_table("audit.events", schema=rows.schema)
for _ in range(40):
    table.append(rows)
reader = table.scan().to_arrow_batch_reader()
before = pyarrow.total_allocated_bytes()
batch = reader.read_next_batch()
limit = time.monotonic() + 60
while (seen := pyarrow.total_allocated_bytes() - before) < 320_000 and time.monotonic() < limit:
    time.sleep(0.1)
print(batch.nbytes, seen)
raise SystemExit(seen < 320_000)
END
