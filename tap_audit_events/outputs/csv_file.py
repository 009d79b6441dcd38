"""Events as CSV (RFC 4180), which a spreadsheet shows without evaluating any text as a formula."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from tap_audit_events.api.columns import COLUMNS, OCCURRED_AT, columns_of
from tap_audit_events.api.event_page import EventPage
from tap_audit_events.outputs.form import OCSF, Form

_END: Final = "\r\n"
_MARK: Final = "'"
_MARKED: Final = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20" + _MARK)
"""What a text begins with if a spreadsheet may evaluate it, or if it begins with a mark itself."""

_QUOTED: Final = re.compile(r'[",\r\n]|\A\s|\s\Z|\A\Z')


def csv_cells(values: Iterable[str | int | None]) -> str:
    """The cells of a line, without its end.

    Nothing stands for None, and two quotes for an empty text. A text that begins with one of
    ``= + - @ '``, a tab or a line break, or with the wide form of such a sign, has an apostrophe in
    front: without the first apostrophe of each cell, every text is exact.
    """
    return ",".join(map(_cell, values))


def _cell(value: str | int | None) -> str:
    if value is None:
        return ""
    text = str(value)
    if text.startswith(_MARKED):
        text = _MARK + text
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def csv_header(form: Form) -> bytes:
    """The first line: the names of the columns; for OCSF, there is one more with its JSON."""
    return (csv_cells([*COLUMNS, *([OCSF] if form.ocsf else [])]) + _END).encode()


def csv_lines(page: EventPage, form: Form) -> bytes:
    """A line for each event of a page.

    Raises:
        ContractError: an event is nested too deeply to be written.
    """
    columns: dict[str, Sequence[str | None]] = columns_of(
        page.raw, page.instants, page.organization_id
    )
    columns[OCCURRED_AT] = [f"{time}Z" for time in columns[OCCURRED_AT]]
    if form.ocsf:
        columns[OCSF] = [text.decode() for text in form.texts(page)]
    return "".join(csv_cells(row) + _END for row in zip(*columns.values(), strict=True)).encode()
