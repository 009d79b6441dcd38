#!/usr/bin/env bash
# chDB 4.4.0: a time with the zone UTC in a Parquet file is read with the zone UTC. In a Delta table, whose
# `timestamp` is a time in UTC by definition, the same column has no zone: it is shown, and converted to
# a date, in the zone of the machine.
#
# Seen: Nullable(DateTime64(6, 'UTC')) 2026-01-12 03:04:05.000000,
# Nullable(DateTime64(6)) 2026-01-11 22:04:05.000000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check chdb==4.4.0 deltalake==1.6.6 pyarrow==26.0.1

TZ=America/New_York venv/bin/python - <<'END'
import os
from datetime import UTC, datetime

import chdb
import pyarrow
import pyarrow.parquet
from deltalake import write_deltalake

time = pyarrow.array([datetime(2026, 1, 12, 3, 4, 5, tzinfo=UTC)], pyarrow.timestamp("us", "UTC"))
events = pyarrow.table({"at": time})
pyarrow.parquet.write_table(events, "events.parquet")
write_deltalake("events", events)
query = "SELECT concat(toTypeName(at), ' ', toString(at)) FROM {}"
sources = ["file('events.parquet')", f"deltaLakeLocal('{os.getcwd()}/events')"]
found = [str(chdb.query(query.format(each), "TSVRaw")).strip() for each in sources]
print(", ".join(found))
raise SystemExit(found != [
    "Nullable(DateTime64(6, 'UTC')) 2026-01-12 03:04:05.000000",
    "Nullable(DateTime64(6)) 2026-01-11 22:04:05.000000",
])
END
