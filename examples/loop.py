#!/usr/bin/env python3
"""The loop that one writes first. It loses late events and repeats others: use the tap instead.

With the three variables of the sandbox set, each run appends new events to `loop.jsonl`:

    audit-events-sandbox run --events 1000 --late 3 -- sh -c '
        python3 examples/loop.py; python3 examples/loop.py; wc -l loop.jsonl'
"""

import json
import os
from pathlib import Path

import requests

base_url, organization, token = (
    os.environ[f"TAP_AUDIT_EVENTS_{name}"]
    for name in ("BASE_URL", "ORGANIZATION_ID", "ACCESS_TOKEN")
)
bookmark = Path("loop.bookmark")
parameters = {"order": "asc", "pageSize": "1000"}
if bookmark.exists():
    parameters["startTime"] = bookmark.read_text()
with Path("loop.jsonl").open("a", encoding="utf-8") as file:
    while True:
        response = requests.get(
            f"{base_url}/v1/organizations/{organization}/audit_events",
            headers={"Authorization": f"Bearer {token}"},
            params=parameters,
            timeout=60,
        )
        response.raise_for_status()
        page = response.json()
        for event in page["auditEvents"]:
            file.write(json.dumps(event) + "\n")
            bookmark.write_text(event["occurredAt"])
        if not page.get("nextCursor"):
            break
        parameters["cursor"] = page["nextCursor"]
