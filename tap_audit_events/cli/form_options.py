"""The options of subcommands that can write events as OCSF."""

# ruff: noqa: PLC0415 - `--help` needs none of what they import

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from tap_audit_events.outputs.form import Form

_OPTIONS: Final = (
    click.option("--as", "as_", type=click.Choice(["ocsf"]),
                 help="Write each event as an event of OCSF: API Activity."
                      "  [default: as the service sent it]"),
    click.option("--ocsf-vendor", "vendor", metavar="NAME",
                 help="With --as ocsf, the vendor of the service.  [default: Unknown]"),
    click.option("--ocsf-map", "map_file", metavar="FILE",
                 help="With --as ocsf, a JSON file that says which action type is which activity,"
                      ' such as {"file_delete": "delete"}.'),
)  # fmt: skip


def form_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a subcommand `--as` and the options of OCSF, as one argument `form`, a `Form`."""

    @wraps(command)
    def with_form(
        *, as_: str | None, vendor: str | None, map_file: str | None, **more: Any
    ) -> None:
        if as_ is None and (vendor, map_file) != (None, None):
            raise click.UsageError("--ocsf-vendor and --ocsf-map need --as ocsf")
        command(**more, form=_form(as_, vendor, map_file))

    for option in reversed(_OPTIONS):
        with_form = option(with_form)
    return with_form


def _form(as_: str | None, vendor: str | None, map_file: str | None) -> Form:
    from tap_audit_events.config.ocsf_map import read_ocsf_map
    from tap_audit_events.events.ocsf.mapping import OcsfMapping
    from tap_audit_events.outputs.form import AS_SENT, Form

    if as_ is None:
        return AS_SENT
    given = {} if vendor is None else {"vendor_name": vendor}
    activities = {} if map_file is None else read_ocsf_map(map_file)
    return Form(OcsfMapping(**given, activities=activities))
