"""Prints rows of counts: as an aligned table, as CSV or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from tap_audit_events.outputs.csv_file import csv_cells


def shown(text: str) -> str:
    """A text for a terminal, which its characters must not control."""
    return text if text.isprintable() else repr(text)


def _as_table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    numbers = {name for row in rows for name, value in row.items() if isinstance(value, int)}
    lines = [list(columns)]
    lines += [
        [f"{row[name]:,}" if name in numbers else shown(row[name] or "") for name in columns]
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "  ".join(
            text.rjust(width) if name in numbers else text.ljust(width)
            for name, text, width in zip(columns, line, widths, strict=True)
        )
        + "\n"
        for line in lines
    )


def _as_csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [columns, *([row[name] for name in columns] for row in rows)]
    return "".join(csv_cells(line) + "\n" for line in lines)


def _as_json(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    del columns
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


TABLE_FORMATS: Final[Mapping[str, Callable[[Sequence[str], Sequence[Mapping[str, Any]]], str]]] = {
    "table": _as_table,
    "csv": _as_csv,
    "json": _as_json,
}
"""How to print rows, for each value of ``--format``."""
