#!/usr/bin/env bash
# Polars 2.1.0: `str.json_path_match` returns the text of a value, but rounds an integer of more than 64
# bits to a double first. `str.json_decode` into a text keeps every digit.
#
# Seen: 1.2345678901234568e+22 12345678901234567890123
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check polars==2.1.0

venv/bin/python - <<'END'
import polars

texts = polars.DataFrame({"details": ['{"count": 12345678901234567890123}']})
details = polars.col("details").str
matched = texts.select(details.json_path_match("$.count")).item()
decoded = texts.select(details.json_decode(polars.Struct({"count": polars.String}))).item()
print(matched, decoded["count"])
found = (matched, decoded["count"])
raise SystemExit(found != ("1.2345678901234568e+22", "12345678901234567890123"))
END
