#!/usr/bin/env bash
# DuckDB 2.0.1: a cast from JSON to VARIANT rounds an integer of 23 digits to a double, without an
# error. As JSON it has all digits, and HUGEINT has room for it.
#
# Seen: 12345678901234567890123 as JSON, 1.2345678901234568e+22 as VARIANT
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check duckdb==2.0.1

venv/bin/python - <<'END'
import duckdb

query = """
SELECT CAST(text AS VARCHAR), CAST(CAST(text AS VARIANT) AS VARCHAR)
FROM (SELECT CAST('12345678901234567890123' AS JSON) AS text)
"""
as_json, as_variant = duckdb.sql(query).fetchall()[0]
print(as_json, as_variant)
changed = as_json != "12345678901234567890123" or as_variant != "1.2345678901234568e+22"
raise SystemExit(changed)
END
