"""The generated parts of `docs/loaders.md` and `docs/fields.md`."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from tests.loaders import hostile
from tests.loaders.cases import CASES, MAP, MAPPER, Case, batch_config
from tests.loaders.comparison import LOST, REFUSED, Changes
from tests.loaders.fields import LOCATIONS, fields
from tests.loaders.findings import CaseReport, Report

BATCH_ROOT: Final = "file:///var/lib/audit-events/batches"

Part = Callable[[Report], str]


def _table(head: str, rows: Iterable[Sequence[str]]) -> str:
    columns = head.split("|")
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(cell.strip() for cell in line)} |\n" for line in lines)


def machine(report: Report) -> str:
    cores, python = report.machine["cores"], report.machine["Python"]
    return f"Measured on {report.date}, on {cores} cores, with Python {python}.\n"


def summary(report: Report) -> str:
    """A row for each case: what it changes, loses and refuses, and how fast it is."""
    rows = [_summary_row(case, report.cases[case.name]) for case in CASES]
    head = "loader|needs|changes|loses|ends with an error for|two runs|after a failed run"
    return _table(f"{head}|after a killed loader|events/s", rows)


def _summary_row(case: Case, found: CaseReport) -> list[str]:
    wanted = (lambda verdict: verdict not in {LOST, REFUSED}), LOST.__eq__, REFUSED.__eq__
    phrases = [_phrases(found.changes, each) or "nothing" for each in wanted]
    once = "once" if case.repeats else ""  # test_loaders.py tests it
    after_kill = once if case.loader.has_key or not once else "may repeat"
    further_runs = [once, once, "" if case.is_mapped else after_kill]
    rate = found.events_per_second
    return [case.name, case.needs, *phrases, *further_runs, f"{_rounded(rate):,}" if rate else ""]


def _rounded(rate: float) -> int:
    """The rate with two digits, which are precise enough."""
    return int(float(f"{rate:.2g}"))


def _phrases(changes: dict[str, Changes], wanted: Callable[[str], bool]) -> str:
    """What happened to which fields of which event, in words."""
    phrases = []
    for name, of_event in changes.items():
        paths: dict[str, list[str]] = {}
        for path, verdict in of_event.items():
            if wanted(verdict):
                paths.setdefault(verdict, []).append(f"`{path}`" if path else "")
        for verdict, found in paths.items():
            what = " ".join(filter(None, [_event_label(name), ", ".join(filter(None, found))]))
            phrases.append(what if verdict in {LOST, REFUSED} else f"{what}: {verdict}")
    return "; ".join(phrases)


def _event_label(name: str) -> str:
    return "each event:" if name == hostile.PLAIN else name


def events(_: Report) -> str:
    """The table of the hostile events, with the contents of each."""
    return _table("event|contains", [[name, hostile.shows(name)] for name in hostile.NAMES])


def versions(report: Report) -> str:
    found = {
        name: version for case in report.cases.values() for name, version in case.versions.items()
    }
    return _table("package|version", sorted(found.items()))


def configuration(case: Case) -> str:
    """The settings of a case as JSON files."""
    tap = {**case.tap, **(batch_config(BATCH_ROOT) if case.batches else {})}
    shown = f"The tap, besides the usual settings:\n\n{_block(tap)}\n" if tap else ""
    if case.is_mapped:
        shown += f"{MAPPER}:\n\n{_block(MAP)}\n"
    settings = {**case.loader.documented_place, **case.settings}
    return f"{shown}The loader:\n\n{_block(settings)}"


def _block(document: Any) -> str:
    return f"```json\n{json.dumps(document, indent=2)}\n```\n"


def field_table(_: Report) -> str:
    rows = [
        [f"`{each.name}`", each.type, each.description, f"`{_example(each.example)}`"]
        for each in fields()
    ]
    return _table("field|type|description|example", rows)


def location_table(_: Report) -> str:
    rows = [
        [f"`{each.name}`", *(f"`{locate(each)}`" for locate in LOCATIONS.values())]
        for each in fields()
    ]
    return _table("|".join(["field", *LOCATIONS]), rows)


def column_table(report: Report) -> str:
    """The columns that each loader creates, with their types."""
    rows = [
        [
            case.name,
            ", ".join(f"`{name}` {kind}" for name, kind in report.cases[case.name].columns.items()),
        ]
        for case in CASES
    ]
    return _table("loader|columns", rows)


def _example(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shown(case: Case) -> Part:
    return lambda _: configuration(case)


PARTS: Final[dict[str, dict[str, Part]]] = {
    "loaders.md": {
        "machine": machine,
        "summary": summary,
        "events": events,
        "versions": versions,
        **{f"settings {case.name}": _shown(case) for case in CASES},
    },
    "fields.md": {"fields": field_table, "locations": location_table, "columns": column_table},
}
"""Each generated part, by its page."""
