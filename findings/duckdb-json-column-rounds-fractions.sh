#!/usr/bin/env bash
# DuckDB 2.0.1: a column of type JSON is stored as a text, but `read_json` does not take over the text
# of the file: it rounds a number with a fraction to a double. An integer of 23 digits keeps all of
# them. `read_ndjson_objects` keeps the text.
#
# Seen: {"integer":12345678901234567890123,"fraction":0.1}
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check duckdb==2.0.1

number=0.1000000000000000000000000000000000001
echo '{"details":{"integer":12345678901234567890123,"fraction":'$number'}}' > events.jsonl
venv/bin/python - <<'END'
import duckdb

query = "SELECT details FROM read_json('events.jsonl', columns = {details: 'JSON'})"
found = duckdb.sql(query).fetchall()[0][0]
whole = duckdb.sql("SELECT json FROM read_ndjson_objects('events.jsonl')").fetchall()[0][0]
print(found, whole, sep="\n")
expected = '{"integer":12345678901234567890123,"fraction":0.1}'
raise SystemExit(found != expected or "0.1000000000000000000000000000000000001" not in whole)
END
