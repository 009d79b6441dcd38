"""What a catalog leaves out of a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str, ...]
"""The names that lead to a field, from the record on."""

_PROPERTIES = "properties"


def deselected(mask: Mapping[tuple[str, ...], bool]) -> list[Path]:
    """The fields that are not selected, by the SDK's mask of breadcrumbs of a selected stream.

    What is below one of them goes with it. A breadcrumb that no record has, as into the items of a
    list, is left out: the SDK does not follow it either.
    """
    return [
        breadcrumb[1::2]
        for breadcrumb, is_selected in mask.items()
        if breadcrumb
        and not is_selected
        and breadcrumb[::2] == len(breadcrumb[1::2]) * (_PROPERTIES,)
    ]


def leave_out(record: dict[str, Any], paths: Iterable[Path]) -> None:
    """Remove fields from a record.

    The SDK does the same by a walk through the whole of each record, which takes longer than all
    the rest that is done with it.
    """
    for *parents, name in paths:
        inside: Any = record
        for parent in parents:
            inside = inside.get(parent)
            if not isinstance(inside, dict):
                break
        else:
            inside.pop(name, None)
