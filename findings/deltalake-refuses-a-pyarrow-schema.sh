#!/usr/bin/env bash
# deltalake 1.6.6: `convert_to_deltalake` wants its own `Schema` for `partition_by`. One of pyarrow,
# which other functions of the package accept, is refused, with a message that names neither.
#
# Seen: TypeError: 'Schema' object is not an instance of 'Schema'
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check deltalake==1.6.6 pyarrow==26.0.1

venv/bin/python - <<'END'
from pathlib import Path

import pyarrow
import pyarrow.parquet
from deltalake import DeltaTable, Field, Schema, convert_to_deltalake
from deltalake.schema import PrimitiveType

Path("events/day=2026-01-01").mkdir(parents=True)
pyarrow.parquet.write_table(pyarrow.table({"id": ["1"]}), "events/day=2026-01-01/part.parquet")
refused = ""
try:
    day = pyarrow.schema([("day", pyarrow.date32())])
    convert_to_deltalake("events", partition_by=day, partition_strategy="hive")
except TypeError as error:
    refused = str(error)
print(refused)
day = Schema([Field("day", PrimitiveType("date"))])
convert_to_deltalake("events", partition_by=day, partition_strategy="hive")
assert DeltaTable("events").count() == 1
raise SystemExit("'Schema' object is not an instance of 'Schema'" not in refused)
END
