#!/usr/bin/env bash
# Polars 2.1.0: a folder of Parquet files is refused if any file in it has another ending, for example
# one that another program is still writing, or `_delta_log/….json` of a Delta table. With the pattern
# `events/*/*.parquet`, Polars reads the same folder.
#
# Seen: InvalidOperationError: directory contained paths with different file extensions
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check polars==2.1.0

venv/bin/python - <<'END'
from pathlib import Path

import polars

for day in ("day=2026-01-01", "_delta_log"):
    Path("events", day).mkdir(parents=True)
polars.DataFrame({"id": ["1"]}).write_parquet("events/day=2026-01-01/part.parquet")
assert len(polars.read_parquet("events/")) == 1
Path("events/_delta_log/00000000000000000000.json").write_text("{}\n")
assert len(polars.read_parquet("events/*/*.parquet")) == 1
try:
    polars.read_parquet("events/")
except polars.exceptions.InvalidOperationError as error:
    print(error)
    raise SystemExit("different file extensions" not in str(error))
raise SystemExit("the folder was read")
END
