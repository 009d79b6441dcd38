#!/usr/bin/env bash
# target-singer-jsonl 0.1.0: the name of its file has the start of the run in whole seconds. Of two
# runs that start within a second, for example for two sources, one replaces the file of the other;
# both print their state and exit with 0. A pair of runs does not always start within the same second:
# up to twenty pairs are tried.
#
# Seen: one file with two records after two runs with two records each
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check target-singer-jsonl==0.1.0

cat > messages.jsonl <<'END'
{"type": "SCHEMA", "stream": "events", "schema": {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "string"}}}, "key_properties": ["id"]}
{"type": "RECORD", "stream": "events", "record": {"id": "1", "n": "one"}}
{"type": "RECORD", "stream": "events", "record": {"id": "2", "n": "two"}}
{"type": "STATE", "value": {"bookmark": 2}}
END

echo '{"destination": "local", "local": {"folder": "output"}}' > config.json
for _ in $(seq 20); do
  rm -rf output
  venv/bin/target-singer-jsonl --config config.json < messages.jsonl > first 2> log &
  venv/bin/target-singer-jsonl --config config.json < messages.jsonl > second 2> log
  wait %1
  records=$(gzip -cd output/events/* | grep -c RECORD)
  echo "files: $(ls output/events | wc -l), records: $records"
  [ "$(cat first second | wc -l)" = 2 ]
  [ "$records" != 2 ] || exit 0
done
exit 1
