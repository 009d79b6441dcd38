#!/usr/bin/env bash
# pandas 3.1.1: `read_json` refuses a file in which any integer has more than 64 bits, also with
# `dtype=False`, which switches the conversion of types off. Python's own json reads it.
#
# Seen: ValueError: Value is too big!
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pandas==3.1.1

echo '{"id": "1", "count": 12345678901234567890123}' > events.jsonl
venv/bin/python - <<'END'
import pandas

try:
    pandas.read_json("events.jsonl", lines=True, dtype=False)
except ValueError as error:
    print(error)
    raise SystemExit("Value is too big" not in str(error))
raise SystemExit("the file was read")
END
