#!/usr/bin/env bash
# Polars 2.1.0: `read_ndjson` with a text column for an object returns its JSON with the escapes of
# texts resolved: a tab in a text becomes a control character, which JSON does not allow. So what it
# returns cannot be parsed.
#
# Seen: {"name": "a<tab>b"}, and Python's json refuses it
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check polars==2.1.0

printf '%s\n' '{"details": {"name": "a\tb"}}' > events.jsonl
venv/bin/python - <<'END'
import json

import polars

found = polars.read_ndjson("events.jsonl", schema={"details": polars.String})["details"][0]
print(repr(found))
try:
    json.loads(found)
except json.JSONDecodeError as error:
    print(error)
    raise SystemExit(found != '{"name": "a\tb"}')
raise SystemExit("the text is JSON")
END
