"""A line of CSV that any reader understands."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

_END = "\r\n"
"""Python 3.11 and 3.12 quote a line break in a value only if lines end with it."""


def csv_line(values: Iterable[object]) -> str:
    """A line without its end. Values with commas, quotes or line breaks are quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator=_END).writerow(values)
    return text.getvalue().removesuffix(_END)
