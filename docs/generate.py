"""Regenerates the generated parts of the documents: ``make docs``.

Each part is between ``<!-- made: NAME -->`` and ``<!-- end -->``: the demo's output, a record, the
table of settings, the errors, the size of a state, the Python API, the sizing, the columns of an
export, the attributes of OCSF. Tests compare the parts with the code. The definition of the Meltano
plugin is generated as a whole.
"""

import json
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import plugin_definition
import python_reference
import scale
from singer_sdk.singerlib import StateMessage

from tap_audit_events.api import arrow
from tap_audit_events.api.columns import COLUMNS
from tap_audit_events.config.names import ENVIRONMENT_PREFIX
from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.errors.catalogue import CATALOGUE, Category
from tap_audit_events.errors.exceptions import service_error
from tap_audit_events.events.instants import EARLIEST, parse_instant
from tap_audit_events.events.ocsf.fields import PLACES
from tap_audit_events.events.schema import SCHEMA
from tap_audit_events.extraction.id_groups import Group, digest_of
from tap_audit_events.extraction.run_state import to_run_state
from tap_audit_events.extraction.watermark import MAX_REMEMBERED_IDS, Watermark
from tap_audit_events.outputs.receivers.otlp_records import ATTRIBUTES, UID
from tap_audit_events.sandbox import generate
from tap_audit_events.service.retries import MAX_BACKOFF_SECONDS
from tap_audit_events.singer.messages import MessageWriter
from tap_audit_events.singer.state import to_bookmark

PROJECT = Path(__file__).resolve().parent.parent
PICTURE = PROJECT / "docs" / "pictures" / "demo.svg"


def part(text: str, name: str) -> str:
    """Return the content of a generated part of a page."""
    return _pattern(name).search(text)[2]  # type: ignore[index]  # a page without the part is an error


def with_part(text: str, name: str, content: str) -> str:
    """Return the page with other content in a generated part."""
    return _pattern(name).sub(lambda found: f"{found[1]}{content}{found[3]}", text)


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(f"(<!-- made: {name} -->\n)(.*?)(<!-- end -->)", re.DOTALL)


ALTERNATIVES = dict.fromkeys(
    ("organization_id", "organizations", "access_token", "access_token_file"), "one of the two"
)


def record() -> str:
    """Show a record as the target receives it, with a line for each field of the first level."""
    events = generate(1000, days=1, seed=3, until=datetime(2026, 1, 31, 8, tzinfo=UTC))
    event = next(
        each
        for each in events
        if (each["action"]["type"], each["actor"]["type"]) == ("workspace_create", "user")
    )
    fields = [f'"{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in event.items()]
    return "```json\n{" + ",\n ".join(fields) + "}\n```\n"


def settings_table() -> str:
    """List each setting with its type, default, variable in the environment and description."""
    rows = [
        "| setting | type | required | default | in the environment | description |",
        "|---|---|---|---|---|---|",
    ]
    for name, schema in SETTINGS_SCHEMA["properties"].items():
        kind = schema["type"][0] + (", secret" if schema.get("secret") else "")
        required = "yes" if name in SETTINGS_SCHEMA["required"] else ALTERNATIVES.get(name, "")
        default = json.dumps(schema["default"]) if "default" in schema else ""
        if name == "user_agent":
            default = "the tap's name and version"
        rows.append(
            f"| `{name}` | {kind} | {required} | {default}"
            f" | `{ENVIRONMENT_PREFIX}{name.upper()}` | {schema['description']} |"
        )
    return "\n".join(rows) + "\n"


def waits_table() -> str:
    """List how long a request may wait for its retries in all, without Retry-After."""
    rows = ["| `max_retries` | longest wait of one request in all | on average |", "|---|---|---|"]
    default = SETTINGS_SCHEMA["properties"]["max_retries"]["default"]
    for count in (3, 5, default, 20):
        limits = [min(2.0**number, MAX_BACKOFF_SECONDS) for number in range(count)]
        name = f"{count} (default)" if count == default else str(count)
        rows.append(f"| {name} | {sum(limits):,.0f} s | {sum(limits) / 2:,.0f} s |")
    return "\n".join(rows) + "\n"


def error_line() -> str:
    """Show an error as a line of the log."""
    error = service_error(
        "AE-403", details="status 403, errCode 'forbidden', msg 'No', vars 'null'"
    )
    error.window = "from 2026-01-31T08:00:00Z to 2026-01-31T09:00:00Z"
    logged = f"2026-01-31 09:00:01,234 | ERROR    | {'tap-audit-events':30} | {error}"
    return f"```text\n{logged}\n```\n"


RETRIED = {
    Category.RETRY: "yes, up to `max_retries` times before this line",
    Category.CURSOR: "the window is restarted, as long as that brings new events",
}
EXIT_CODES = {
    Category.STOPPED: " and ".join(
        f"{128 + number} after {number.name}" for number in (signal.SIGTERM, signal.SIGINT)
    )
}


def error_sections() -> str:
    """Write a section for each code: summary, cause, next step, retries and exit code."""
    return "\n".join(
        f"## {code}\n\n**{entry.summary}.**\n\n"
        f"- Why: {entry.cause}\n"
        f"- What to do: {entry.next_step}\n"
        f"- Retried automatically: {RETRIED.get(entry.category, 'no')}\n"
        f"- Exit code: {EXIT_CODES.get(entry.category, '1')}\n"
        for code, entry in CATALOGUE.items()
    )


def state_table() -> str:
    """List sizes of a STATE line, for ids that are UUIDs."""
    rows = ["| ids within the lookback | one STATE |", "|---|---|"]
    for count in (0, 100, 1000, MAX_REMEMBERED_IDS):
        ids = [str(uuid.UUID(int=number)) for number in range(count)]
        bookmark_at = parse_instant("2026-01-31T08:00:00.123Z")
        groups = [Group(bookmark_at, digest_of(each)) for each in ids]
        watermark = Watermark(bookmark_at, groups, covered_from=EARLIEST)
        bookmark = to_bookmark(
            to_run_state(watermark, organization_id=str(uuid.UUID(int=0)), action_types=[]),
            str(uuid.UUID(int=0)),
        )
        state = StateMessage(value={"bookmarks": {"audit_events": bookmark}})
        size = len(MessageWriter().format_message(state))
        rows.append(f"| {count:,} | {size / 1000:,.1f} kB |")
    return "\n".join(rows) + "\n"


COLUMN_TYPES = {"timestamp[us, tz=UTC]": "timestamp", "string": "string"}
OTHER_COLUMNS = {
    "organization_id": "UUID of the organization from which the event was read.",
    "occurred_at": "Time of the event in UTC, cut to microseconds.",
    "other_fields": "A JSON object of everything that has no column of its own, or not the type of"
    " its column; null if there is nothing.",
}


def columns_table() -> str:
    """List each column of an export with its type, field and meaning."""
    rows = ["| column | type | field | meaning |", "|---|---|---|---|"]
    for column in arrow.SCHEMA:
        path = COLUMNS[column.name]
        schema: dict[str, Any] = SCHEMA
        for name in path:
            schema = schema["properties"][name]
        meaning = schema["description"] if path else OTHER_COLUMNS[column.name]
        if column.name == "action_details":
            meaning += " As JSON text."
        kind = COLUMN_TYPES[str(column.type)] + (" or null" if column.nullable else "")
        field = f"`{'.'.join(path)}`" if path else ""
        rows.append(f"| `{column.name}` | {kind} | {field} | {meaning} |")
    return "\n".join(rows) + "\n"


def log_records_table() -> str:
    """The table of where the fields of an event are in a log record of OTLP."""
    places = {
        "`occurredAt`": "time",
        "`action.type`": "event name",
        "organization and `id`": f"attribute `{UID}`, with a slash between them",
        **{f"`{field}`": f"attribute `{name}`" for field, name in ATTRIBUTES.items()},
    }
    rows = "".join(f"| {field} | {place} |\n" for field, place in places.items())
    return f"| field | in the log record, besides the body |\n|---|---|\n{rows}"


def places_table() -> str:
    """List each field of an event with the attributes of OCSF that have it."""
    rows = ["| field | attribute of OCSF | also in |", "|---|---|---|"]
    for field, (first, *others) in PLACES.items():
        rows.append(f"| `{field}` | `{first}` | {', '.join(f'`{each}`' for each in others)} |")
    return "\n".join(rows) + "\n"


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"record": record},
    "docs/delivery.md": {"state": state_table},
    "docs/errors.md": {"line": error_line, "errors": error_sections},
    "docs/export.md": {"columns": columns_table},
    "docs/ocsf.md": {"places": places_table},
    "docs/siem.md": {"log-records": log_records_table},
    "docs/python.md": {"reference": python_reference.reference},
    "docs/scale.md": {"sizing": scale.table},
    "docs/settings.md": {"settings": settings_table, "waits": waits_table},
}
"""The parts of each page, and the functions that generate them; the demo is run for its part."""


def demo_output(printed: str) -> str:
    """Return the printed output of the demo as a fenced block."""
    return "```text\n" + "\n".join(map(str.rstrip, printed.strip("\n").split("\n"))) + "\n```\n"


def update(page: str, parts: Mapping[str, str]) -> None:
    """Replace the content of the generated parts of a page."""
    path = PROJECT / page
    text = path.read_text()
    for name, content in parts.items():
        text = with_part(text, name, content)
    path.write_text(text)


def main() -> None:
    """Regenerate every part; the demo runs once."""
    plugin_definition.write()
    for page, parts in PARTS.items():
        update(page, {name: content() for name, content in parts.items()})
    command = [sys.executable, str(PROJECT / "demo" / "demo.py")]
    demo = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    update("docs/sandbox.md", {"demo": demo_output(demo.stdout)})
    drawn = PROJECT / "demo" / "output" / "events.svg"
    PICTURE.write_text(drawn.read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    main()
