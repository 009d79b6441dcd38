#!/usr/bin/env bash
# Tenzir 6.20.0: `read_ndjson` takes a JSON string that looks like a time, an address or a duration for
# one, and changes it: of a time with twelve digits of a second, nine are left. `ocsf_cast` then sets
# attributes to null that OCSF defines as strings: `metadata.original_time`, the time "in the original
# format", and ids that look like addresses. It prints a warning, and the event passes. With
# `read_ndjson raw=true` strings stay strings; then the time and `src_endpoint.ip` must be converted.
#
# Seen: "original_time":null, and `expected type string for metadata.original_time, but got time`
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check tenzir==6.20.0

cat >event.json <<'END'
{"class_uid":6003,"category_uid":6,"activity_id":99,"activity_name":"x","type_uid":600399,"severity_id":0,"time":1714979289123,"metadata":{"version":"1.8.0","original_time":"2024-05-06T07:08:09.123456789123Z","product":{"name":"P"}},"actor":{"user":{"uid":"10.1.2.3"}},"api":{"operation":"x"},"src_endpoint":{"ip":"192.0.2.1"}}
END
cast='time = from_epoch(time * 1ms)
ocsf_cast
write_ndjson'
as_read=$(venv/bin/tenzir "from_file \"event.json\" { read_ndjson }
$cast" 2>warnings)
raw=$(venv/bin/tenzir "from_file \"event.json\" { read_ndjson raw=true }
src_endpoint.ip = ip(src_endpoint.ip)
$cast" 2>/dev/null)
echo "$as_read"
cat warnings
grep --quiet '"original_time":null' <<<"$as_read"
grep --quiet 'expected type `string` for `metadata.original_time`, but got `time`' warnings
grep --quiet '"original_time":"2024-05-06T07:08:09.123456789123Z"' <<<"$raw"
