"""The form in which an output writes events: as the service sent them, or as OCSF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tap_audit_events.api.event_page import EventPage

if TYPE_CHECKING:
    import pyarrow as pa

    from tap_audit_events.events.ocsf.mapping import OcsfMapping

OCSF: Final = "ocsf"
"""The name of the form, and of the column of a table that has the event in this form."""


@dataclass(frozen=True)
class Form:
    """A form of events.

    Attributes:
        ocsf: how events become OCSF events; None for events as the service sent them.
    """

    ocsf: OcsfMapping | None = None

    @property
    def name(self) -> str | None:
        """The name of the form; None for events as the service sent them."""
        return None if self.ocsf is None else OCSF

    def texts(self, page: EventPage) -> list[bytes]:
        """The JSON text of each event of a page, on one line."""
        return page.raw if self.ocsf is None else page.ocsf(self.ocsf)

    def rows(self, page: EventPage) -> pa.RecordBatch:
        """The events of a page as rows of the schema."""
        rows = page.arrow()
        if self.ocsf is None:
            return rows
        import pyarrow as pa  # noqa: PLC0415 - an extra

        return rows.append_column(OCSF, pa.array(page.ocsf(self.ocsf), pa.string()))

    @property
    def schema(self) -> pa.Schema:
        """The columns of a table: those of the fields; for OCSF, also one with its JSON."""
        from tap_audit_events.api.arrow import SCHEMA  # noqa: PLC0415 - an extra

        if self.ocsf is None:
            return SCHEMA
        import pyarrow as pa  # noqa: PLC0415 - an extra

        return SCHEMA.append(pa.field(OCSF, pa.string()))


AS_SENT: Final = Form()
