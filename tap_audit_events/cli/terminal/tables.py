"""Prints rows of counts: as an aligned table, as CSV or as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

_END: Final = "\r\n"
"""Python 3.11 and 3.12 quote a line break in a value only if lines end with it."""


def csv_line(values: Iterable[object]) -> str:
    """A line that any reader understands: values with commas, quotes or line breaks are quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator=_END).writerow(values)
    return text.getvalue().removesuffix(_END) + "\n"


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
    return "".join(map(csv_line, [columns, *([row[name] for name in columns] for row in rows)]))


def _as_json(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    del columns
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


TABLE_FORMATS: Final[Mapping[str, Callable[[Sequence[str], Sequence[Mapping[str, Any]]], str]]] = {
    "table": _as_table,
    "csv": _as_csv,
    "json": _as_json,
}
"""How to print rows, for each value of ``--format``."""
