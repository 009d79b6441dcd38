#!/usr/bin/env bash
# Tenzir 6.20.0: with `accept_splunk … ack=true`, a request gets an `ackId`, and each later request for its
# acknowledgment responds with false, also long after `to_file` has written the event. A client of Splunk's
# HTTP Event Collector that waits for the acknowledgment, as it should, waits for ever or sends it again.
# The same happens if `tenzir-node` runs the pipeline. Without `ack=true` there is no `ackId`.
#
# Seen: the event is in the file, and 20 seconds later still {"acks":{"…":false}}
set -euo pipefail
folder=$(mktemp -d)
trap 'kill "${pid:-}" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check tenzir==6.20.0

port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
venv/bin/tenzir --bare-mode "accept_splunk \"127.0.0.1:$port\", hec_token=\"a-token\", ack=true
to_file \"stored.jsonl\" { write_ndjson }" 2>log &
pid=$!
python3 - "$port" <<'END'
import json
import os
import sys
import time
import urllib.error
import urllib.request

headers = {
    "Authorization": "Splunk a-token",
    "X-Splunk-Request-Channel": "11111111-1111-4111-8111-111111111111",
}


def post(path, body):
    url = f"http://127.0.0.1:{sys.argv[1]}/services/collector/{path}"
    data = json.dumps(body).encode()
    return json.load(urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=10))


for _ in range(600):
    try:
        sent = post("event", {"time": 1, "event": {"n": 1}})
        break
    except urllib.error.URLError:
        time.sleep(0.1)
print(sent)
while not (os.path.exists("stored.jsonl") and os.path.getsize("stored.jsonl")):
    time.sleep(0.1)
print(open("stored.jsonl").read())
time.sleep(20)
acknowledged = post("ack", {"acks": [sent["ackId"]]})
print(acknowledged)
assert acknowledged["acks"] == {str(sent["ackId"]): False}
END
