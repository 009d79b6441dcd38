"""CSV: every value can be read back, and a spreadsheet evaluates none of them."""

import csv
import gzip
import io
import json
import re
import subprocess
import sys

from hypothesis import example, given
from hypothesis import strategies as st

from tap_audit_events.api.columns import COLUMNS
from tap_audit_events.outputs.csv_file import csv_cells, csv_header, csv_lines
from tap_audit_events.outputs.form import AS_SENT
from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import csv_table, history
from tests.cli.failing import refused
from tests.outputs.opened import page_of
from tests.project.pages import sections

EVALUATED = ("=", "+", "-", "@", "\t", "\r")
FORMULAS = [*(f"{each}1" for each in EVALUATED), "\n=1", "\uff1d1", "@SUM(A1)"]
HARMLESS = [
    "",
    " ",
    "a=1",
    "'",
    "''=1",
    "'a",
    '"',
    'a"b,c;d',
    "a\r\nb\nc\rd",
    " a ",
    "\u2028",
    "😀",
]
NAMES = [*FORMULAS, *HARMLESS]

texts = st.none() | st.sampled_from(NAMES) | st.text(st.characters(exclude_categories=["Cs"]))


@given(rows=st.lists(st.lists(texts, min_size=2, max_size=3), max_size=3))
@example(rows=[[each, None] for each in NAMES])
def test_every_value_can_be_read_back_without_the_first_apostrophe(
    rows: list[list[str | None]],
) -> None:
    """Python's reader does not distinguish null from an empty text."""
    written = "".join(csv_cells(row) + "\r\n" for row in rows)

    found = list(csv.reader(io.StringIO(written, newline="")))

    assert [[cell.removeprefix("'") for cell in row] for row in found] == [
        [cell or "" for cell in row] for row in rows
    ]
    assert not [cell for row in found for cell in row if cell.startswith(EVALUATED)]


@given(name=texts, email=texts, details=st.sampled_from(["=1", -1, [1, "\n"], None, {}]))
@example(name="", email=None, details=None)
def test_an_event_keeps_every_value(name: str | None, email: str | None, details: object) -> None:
    """Null is a cell without anything, and an empty text has quotes."""
    entity = {"name": name, "email": email}
    event = an_event(action={"type": "t", "details": details}, entity=entity)

    (row,) = csv_table(csv_header(AS_SENT) + csv_lines(page_of([event]), AS_SENT)).to_pylist()

    assert list(row) == list(COLUMNS)
    assert (row["entity_name"], row["entity_email"]) == (name, email)
    text = row["action_details"]
    assert (None if text is None else json.loads(text)) == details


def test_the_example_of_the_page_reads_every_text_exactly(
    service: Service, command: Command
) -> None:
    names = ["=1+1", "'a", "", "b\r\nc"]
    times = [f"2024-05-06T00:00:0{n}.123456789Z" for n in range(len(names))]
    service.add(
        an_event(id=f"{n}", at=at, action_type="=t", actor={"name": name})
        for n, (at, name) in enumerate(zip(times, names, strict=True))
    )
    command("export", "--to", "events.csv").raise_for_exit_code()
    (code,) = re.findall(r"```python\n(.*?)```", sections("export.md")["CSV"].text, re.DOTALL)

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=command.folder, capture_output=True, check=True
    )

    lines = [f"{at} =t {name}\n" for at, name in zip(times, names, strict=True)]
    assert done.stdout.decode() == "".join(lines)


def test_an_older_file_with_other_columns_is_refused(service: Service, command: Command) -> None:
    run = ("export", "--to", "e.csv.gz", "--state", "s.json")
    service.add(history(3))
    command(*run).raise_for_exit_code()
    path, state = command.folder / "e.csv.gz", command.folder / "s.json"
    path.write_bytes(gzip.compress(b"id,name\r\n"))
    document = json.loads(state.read_text()) | {"bytes": path.stat().st_size}
    state.write_text(json.dumps(document))
    service.add(history(3, start=3))

    assert "has other columns than this version writes" in refused(command(*run))


def test_the_list_of_differences_is_marked_too(service: Service, command: Command) -> None:
    service.add([an_event(id="=1+1"), an_event(id="a")])
    (command.folder / "e.jsonl").write_text("")
    command("verify", "--against", "e.jsonl", "--list", "list.csv")
    with (command.folder / "list.csv").open(newline="") as lines:
        assert [row["id"] for row in csv.DictReader(lines)] == ["'=1+1", "a"]
