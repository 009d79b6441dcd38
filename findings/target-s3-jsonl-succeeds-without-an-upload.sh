#!/usr/bin/env bash
# target-s3-jsonl 2.0.1: it prints the state and exits with 0 although the upload failed, here because
# nothing listens at the address of the storage. No line says so. A loader that follows the Singer
# specification prints a state only after its records were stored.
#
# Seen: the state {"bookmark": 2}, exit code 0, and the file still in its work folder
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check target-s3-jsonl==2.0.1

cat > messages.jsonl <<'END'
{"type": "SCHEMA", "stream": "events", "schema": {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "string"}}}, "key_properties": ["id"]}
{"type": "RECORD", "stream": "events", "record": {"id": "1", "n": "one"}}
{"type": "RECORD", "stream": "events", "record": {"id": "2", "n": "two"}}
{"type": "STATE", "value": {"bookmark": 2}}
END

mkdir work
cat > config.json <<'END'
{"s3_bucket": "events", "aws_endpoint_url": "http://127.0.0.1:1", "work_dir": "work",
 "aws_access_key_id": "nobody", "aws_secret_access_key": "not-a-secret"}
END
AWS_DEFAULT_REGION=us-east-1 AWS_MAX_ATTEMPTS=1 venv/bin/target-s3-jsonl --config config.json < messages.jsonl > state
cat state
ls work
[ "$(cat state)" = '{"bookmark": 2}' ]
[ -n "$(ls work)" ]
