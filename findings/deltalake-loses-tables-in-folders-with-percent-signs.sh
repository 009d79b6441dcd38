#!/usr/bin/env bash
# deltalake 1.6.6: if the path of a table has `%` and two hexadecimal digits, writing decodes the path
# in one place and not in another. The commit is written, but then not found: the table is in the
# folder `a%20b`, and its log is looked for in `a b`. A URL with `%2520` does the same.
#
# Seen: DeltaError: Kernel error: File not found: …/a b/_delta_log/00000000000000000000.json
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'deltalake==1.6.6' 'pyarrow==26.0.1'

venv/bin/python - <<'END'
from pathlib import Path

import pyarrow
from deltalake import write_deltalake

try:
    write_deltalake("a%20b", pyarrow.table({"id": ["1"]}))
except Exception as error:
    print(f"{type(error).__name__}: {error}")
    raise SystemExit("a b/_delta_log" not in str(error) or not Path("a%20b").exists())
raise SystemExit("it was written")
END
