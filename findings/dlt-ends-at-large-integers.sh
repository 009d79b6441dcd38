#!/usr/bin/env bash
# dlt 1.31.0: a resource that yields dictionaries ends the extraction at an integer of more than 64
# bits, wherever it is nested, before it knows the destination's types. Python's json reads such
# integers.
#
# Seen: TypeError: Integer exceeds 64-bit range
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check 'dlt[duckdb]==1.31.0'

export DLT_DATA_DIR="$folder/dlt" RUNTIME__DLTHUB_TELEMETRY=false
venv/bin/python - <<'END'
import json

import dlt
from dlt.pipeline.exceptions import PipelineStepFailed

events = [json.loads('{"id": "1", "details": {"count": 12345678901234567890123}}')]
pipeline = dlt.pipeline("events", destination=dlt.destinations.duckdb("events.duckdb"))
try:
    pipeline.run(events, table_name="events")
except PipelineStepFailed as error:
    print(error.step, error.exception)
    raise SystemExit(error.step != "extract" or "exceeds 64-bit range" not in str(error.exception))
raise SystemExit("the event was loaded")
END
