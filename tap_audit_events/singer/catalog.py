"""The fields that a catalog deselects, and their removal from a record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str, ...]
"""The names that lead from the record to a field."""

_PROPERTIES = "properties"


def deselected(mask: Mapping[tuple[str, ...], bool]) -> list[Path]:
    """The fields that are not selected, with everything inside them.

    Breadcrumbs into the items of a list are ignored, as the SDK ignores them.

    Args:
        mask: the SDK's mask of a selected stream: whether each breadcrumb is selected.
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

    The SDK does the same by walking through each whole record, which takes longer than everything
    else that is done with it.
    """
    for *parents, name in paths:
        inside: Any = record
        for parent in parents:
            inside = inside.get(parent)
            if not isinstance(inside, dict):
                break
        else:
            inside.pop(name, None)
