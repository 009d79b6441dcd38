#!/usr/bin/env bash
# requests 2.34.2 with urllib3 2.8.0 and backports-zstd 1.8.0: the body of a response that ends inside of
# a zstd frame is returned shorter, without an error. For the same response, `data` of urllib3 raises
# DecodeError: it knows that the frame is incomplete.
#
# Seen: requests returns 393,216 of 800,000 bytes; urllib3: Zstandard data is incomplete
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check requests==2.34.2 'urllib3[zstd]==2.8.0' backports-zstd==1.8.0

venv/bin/python - <<'END'
import http.server
import random
import threading

import requests
import urllib3
from backports import zstd

TEXT = random.Random(1).randbytes(400_000).hex().encode()
WHOLE = zstd.compress(TEXT)
CUT = WHOLE[: len(WHOLE) // 2]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Encoding", "zstd")
        self.send_header("Content-Length", str(len(CUT)))
        self.end_headers()
        self.wfile.write(CUT)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/"
length = len(requests.get(url, headers={"Accept-Encoding": "zstd"}).content)
raised = ""
try:
    len(urllib3.request("GET", url, headers={"Accept-Encoding": "zstd"}).data)
except urllib3.exceptions.DecodeError as error:
    raised = str(error)
print(length, "of", len(TEXT), raised)
raise SystemExit(not (0 < length < len(TEXT)) or "incomplete" not in raised)
END
