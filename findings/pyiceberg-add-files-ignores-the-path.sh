#!/usr/bin/env bash
# PyIceberg 0.12.0: `add_files` takes the values of a partition from the statistics of a Parquet file,
# and never from its path. In a table with a column that only the path has (`day=2026-01-01`), the
# partition is null: a filter by it finds no row, although a scan without a filter returns them.
#
# Seen: 1 row without a filter, 0 rows with `day = '2026-01-01'`
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'pyiceberg[pyarrow,sql-sqlite]==0.12.0'

venv/bin/python - <<'END'
from pathlib import Path

import pyarrow
import pyarrow.parquet
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform

file = Path("events/day=2026-01-01/part.parquet").absolute()
file.parent.mkdir(parents=True)
pyarrow.parquet.write_table(pyarrow.table({"id": ["1"]}), file)
catalog = SqlCatalog("local", uri="sqlite:///catalog.db", warehouse="warehouse")
catalog.create_namespace("audit")
schema = pyarrow.schema([("id", pyarrow.string()), ("day", pyarrow.date32())])
table = catalog.create_table("audit.events", schema=schema)
with table.update_spec() as spec:
    spec.add_field("day", IdentityTransform(), "day")
table.add_files([str(file)])
found = table.scan().count(), table.scan(row_filter="day = '2026-01-01'").count()
print(found)
raise SystemExit(found != (1, 0))
END
