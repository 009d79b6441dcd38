#!/usr/bin/env bash
# target-duckdb 0.8.0 with duckdb 2.0.1, which its requirements allow: the first row of each batch is
# not stored, and the exit code is 0. With duckdb 1.2, it is stored.
#
# Seen: [('2', 'two')] of two rows
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check target-duckdb==0.8.0 duckdb==2.0.1

cat > messages.jsonl <<'END'
{"type": "SCHEMA", "stream": "events", "schema": {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "string"}}}, "key_properties": ["id"]}
{"type": "RECORD", "stream": "events", "record": {"id": "1", "n": "one"}}
{"type": "RECORD", "stream": "events", "record": {"id": "2", "n": "two"}}
{"type": "STATE", "value": {"bookmark": 2}}
END

echo '{"filepath": "events.duckdb", "default_target_schema": "main"}' > config.json
venv/bin/target-duckdb --config config.json < messages.jsonl
venv/bin/python - <<'END'
import duckdb

found = duckdb.connect("events.duckdb").execute("SELECT id, n FROM main.events").fetchall()
print(found)
raise SystemExit(found != [("2", "two")])
END
