"""The events that the sandbox holds, and when each of them becomes visible."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from tap_audit_events.sandbox.data.instants import instant_of
from tap_audit_events.sandbox.data.rows import (
    Displacement,
    Key,
    Row,
    Rows,
    Selection,
    key_of,
    key_of_row,
    literal_row,
)


class Store:
    """Events sorted by instant, then id, and found in logarithmic time."""

    def __init__(self) -> None:
        self._all = Rows()
        self._of_types: dict[frozenset[str], Rows] = {}
        self._hidden: dict[int, list[Row]] = {}
        self._late: list[Row] = []

    def __len__(self) -> int:
        """How many events are visible."""
        return len(self._all)

    @property
    def newest(self) -> Row | None:
        """The newest visible event, if there is one."""
        return self._all[-1] if len(self) else None

    def key_at(self, index: int) -> Key | None:
        """The key of the visible event at an index in ascending order, if there is one."""
        return key_of_row(self._all[index]) if 0 <= index < len(self) else None

    def add(self, events: Iterable[dict[str, Any]], visible_from_request: int = 0) -> None:
        """Add events; those with `visible_from_request` are hidden until `reveal` is called for it.

        Raises ValueError for an event whose `occurredAt` is not an instant, and for one that has
        the instant and the id of another.
        """
        rows = [_row(event, _serialised(event)) for event in events]
        self._hold(rows, visible_from_request)

    def add_raw(self, texts: Iterable[bytes], visible_from_request: int = 0) -> None:
        """Add events as JSON texts, which are served byte for byte; else as `add`."""
        # Numbers are left as text: Python refuses to read integers of more than 4,300 digits.
        rows = [_row(json.loads(text, parse_int=str, parse_float=str), text) for text in texts]
        self._hold(rows, visible_from_request)

    def add_rows(self, rows: Rows) -> None:
        """Add events that are sorted already."""
        self._all.merge(rows)
        for types, selected in self._of_types.items():
            selected.merge(rows.of_types(types))

    def add_late(self, events: Iterable[dict[str, Any]]) -> None:
        """Add events that are hidden until the request that `reveal_late` names."""
        self._late.extend(_row(event, _serialised(event)) for event in events)

    def reveal_late(self, request_number: int) -> None:
        """Make the late events visible from that request."""
        self._hold(self._late, request_number)
        self._late = []

    def reveal(self, request_number: int) -> None:
        """Make the events visible that are hidden until this request or an earlier one."""
        for number in [number for number in self._hidden if number <= request_number]:
            self.add_rows(Rows.of(self._hidden.pop(number)))

    def page(
        self,
        selection: Selection,
        after: Key | None,
        size: int,
        displacements: Sequence[Displacement] = (),
    ) -> tuple[list[Row], bool]:
        """The first `size` selected events after a key, in order, and whether more remain."""
        rows = self._selected(selection.action_types)
        return rows.page(selection, after, size, displacements)

    def _hold(self, rows: list[Row], visible_from_request: int) -> None:
        if visible_from_request:
            self._hidden.setdefault(visible_from_request, []).extend(rows)
        else:
            self.add_rows(Rows.of(rows))

    def _selected(self, types: frozenset[str] | None) -> Rows:
        if types is None:
            return self._all
        if types not in self._of_types:
            self._of_types[types] = self._all.of_types(types)
        return self._of_types[types]


def _row(event: dict[str, Any], text: bytes) -> Row:
    key = key_of(instant_of(event["occurredAt"]), event["id"])
    return literal_row(key, event["action"]["type"], text)


def _serialised(event: dict[str, Any]) -> bytes:
    try:
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # A lone surrogate has no UTF-8; JSON writes it as an escape.
        return json.dumps(event, separators=(",", ":")).encode()
