#!/usr/bin/env bash
# chDB 4.4.0 (ClickHouse 26.9): if one number of a JSON text is too large for a double,
# JSONExtractString finds no field of the whole text, without an error. JSON does not limit numbers.
#
# Seen: ["sign_in", ""] for a text without such a number and one with it
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check chdb==4.4.0

venv/bin/python - <<'END'
import chdb

query = """
SELECT JSONExtractString('{"type": "sign_in", "ratio": 1e300}', 'type'),
       JSONExtractString('{"type": "sign_in", "ratio": 1e400}', 'type')
"""
found = str(chdb.query(query, "JSONCompactEachRow")).strip()
print(found)
raise SystemExit(found != '["sign_in", ""]')
END
