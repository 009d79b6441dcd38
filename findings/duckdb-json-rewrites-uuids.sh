#!/usr/bin/env bash
# DuckDB 2.0.1: `read_json` guesses that texts are UUIDs, and returns them in lower case. JSON has only
# texts, and an id in upper case no longer equals itself in other systems.
#
# Seen: 0c2f6f0e-8f0b-4b52-9d6c-8a4a3c1f9d10
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check duckdb==2.0.1

echo '{"id": "0C2F6F0E-8F0B-4B52-9D6C-8A4A3C1F9D10"}' > events.jsonl
venv/bin/python - <<'END'
import duckdb

found = str(duckdb.sql("SELECT id FROM read_json('events.jsonl')").fetchall()[0][0])
print(found)
raise SystemExit(found != "0c2f6f0e-8f0b-4b52-9d6c-8a4a3c1f9d10")
END
