#!/usr/bin/env bash
# Tenzir 6.20.0: `accept_opensearch` responds to each `_bulk` request with the result of one item, whatever
# the number of items in the request. OpenSearch and Elasticsearch return a result for each item, in their
# order, and clients such as `elasticsearch.helpers.bulk` compare the two. All events are stored.
#
# Seen: two documents are created, and the response is {"errors":false,"items":[{"create":{...}}]}
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "${pid:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check tenzir==6.20.0

port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
venv/bin/tenzir "accept_opensearch \"127.0.0.1:$port\"
head 2
to_file \"stored.jsonl\" { write_ndjson }" 2>log &
pid=$!
python3 - "$port" <<'END' | tee response
import sys
import time
import urllib.error
import urllib.request

body = b'{"create":{"_id":"a"}}\n{"n":1}\n{"create":{"_id":"b"}}\n{"n":2}\n'
headers = {"Content-Type": "application/x-ndjson"}
request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/index/_bulk", body, headers)
for _ in range(600):
    try:
        print(urllib.request.urlopen(request, timeout=10).read().decode())
        break
    except urllib.error.URLError:
        time.sleep(0.1)
END
wait "$pid"
cat stored.jsonl
test "$(wc -l <stored.jsonl)" = 2
test "$(grep --only-matching '"status":201' response | wc -l)" = 1
grep --quiet '"errors":false' response
