"""The options of subcommands that can leave out events."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import click


def _checked(
    context: click.Context, option: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """The values; an empty one, from an unset variable, would match events without the field."""
    for value in values:
        if not value:
            raise click.BadParameter("the value is empty", context, option)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise click.BadParameter("the value is not UTF-8", context, option) from None
    return values


_OPTIONS: Final = (
    click.option("--actor", multiple=True, metavar="ID", callback=_checked,
                 help="Only events that this actor caused: its id or e-mail address. If repeated,"
                      " any of them."),
    click.option("--entity", multiple=True, metavar="ID", callback=_checked,
                 help="Only events that concern this entity: its id or e-mail address. If repeated,"
                      " any of them. Together with --actor, both must match."),
)  # fmt: skip


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a subcommand `--actor` and `--entity`, as one argument `filters`, an `EventFilter`."""

    @wraps(command)
    def with_filters(*, actor: tuple[str, ...], entity: tuple[str, ...], **more: Any) -> None:
        from tap_audit_events.events.event_filter import EventFilter  # noqa: PLC0415 - for --help

        command(**more, filters=EventFilter.of(actor, entity))

    for option in reversed(_OPTIONS):
        with_filters = option(with_filters)
    return with_filters
