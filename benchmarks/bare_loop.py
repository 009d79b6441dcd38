"""Does the least that a tap can do: requests each page, finds the cursor, writes the bytes.

It parses no event, checks nothing and never retries.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import requests

CURSOR_AT_THE_END: Final = re.compile(rb'"nextCursor":("[^"\\]+")\}$')
TAIL_BYTES: Final = 400


def pages(config: dict[str, Any]) -> Iterator[bytes]:
    """Return the bytes of each page, oldest first."""
    url = f"{config['base_url']}/v1/organizations/{config['organization_id']}/audit_events"
    parameters = {"order": "asc", "pageSize": "1000"}
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {config['access_token']}"
        while True:
            response = session.get(url, params=parameters, timeout=60)
            response.raise_for_status()
            page = response.content
            yield page
            found = CURSOR_AT_THE_END.search(page, max(0, len(page) - TAIL_BYTES))
            if not found:
                return
            parameters["cursor"] = json.loads(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    given = parser.parse_args()
    for page in pages(json.loads(given.config.read_text())):
        sys.stdout.buffer.write(page)
        sys.stdout.buffer.write(b"\n")


if __name__ == "__main__":
    main()
