"""A page of events, with the state that covers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tap_audit_events.events.exact_json import JsonText, read_record
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.extraction.delivery import pick

if TYPE_CHECKING:
    import pyarrow as pa

    from tap_audit_events.events.ocsf.mapping import OcsfMapping


class EventPage:
    """Events of one organization in ascending order; no event is in two pages.

    `events`, `raw` and the states are created when they are first used. A page can be pickled and
    copied, with its state.

    Args:
        texts: the events' JSON texts.
        instants: their times.
        organization_id: UUID of the organization from which they were read.
        shape: what the settings ``details_format`` and ``raw_event`` change in `events`.
        state: creates the state.
        organization_state: creates the state of this organization; by default it is the state.
        excluded: how many events were left out.

    Attributes:
        organization_id: UUID of the organization from which the events were read.
        excluded: how many new events the setting ``exclude_action_types`` has left out.
    """

    def __init__(
        self,
        texts: Sequence[JsonText],
        instants: Sequence[Instant],
        *,
        organization_id: str,
        shape: RecordShape,
        state: Callable[[], Mapping[str, Any]],
        organization_state: Callable[[], Mapping[str, Any]] | None = None,
        excluded: int = 0,
    ) -> None:
        self._texts = texts
        self._instants = instants
        self.organization_id = organization_id
        self.excluded = excluded
        self._shape = shape
        self._make_state = state
        self._make_organization_state = organization_state or state

    def __reduce__(self) -> tuple[Any, ...]:
        """Let `pickle` and `copy` create the states, which belong to the run."""
        states = self.state, self.organization_state
        columns = self.raw, list(self.instants)
        return _page, (columns, self.organization_id, self._shape, states, self.excluded)

    def __len__(self) -> int:
        return len(self._texts)

    def __bool__(self) -> bool:
        """True, even without events: the page has a newer state."""
        return True

    @property
    def instants(self) -> Sequence[Instant]:
        """The time of each event: RFC 3339 text in UTC, without ``Z``, with every digit.

        Sorted as texts, they are in the order of time; the first ten characters are the date.
        """
        return self._instants

    def __repr__(self) -> str:
        return f"<EventPage of {len(self)} events>"

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The events as dictionaries.

        A number with a fraction or an exponent is a ``decimal.Decimal``, so that it keeps every
        digit. For JSON, use `raw`.

        Raises:
            ContractError: an event is nested too deeply to be read.
        """
        return [read_record(self._shape.apply(text)) for text in self._texts]

    @cached_property
    def raw(self) -> list[bytes]:
        """The JSON text of each event, in UTF-8 on one line, as the service sent it.

        Two things are changed: NUL and lone surrogates become U+FFFD, and an ``occurredAt`` that is
        not in UTC form becomes the same instant in that form.
        """
        return [bytes(text) for text in self._texts]

    @cached_property
    def state(self) -> dict[str, Any]:
        """The state to pass to the next call of `AuditEvents.pages`, once these events are stored.

        It can be stored as JSON, and covers this page and all earlier ones. It contains the
        bookmark and digests of the ids within the lookback: some kB, at most about 1 MB for each
        organization. With many organizations, store `organization_state` instead, or this one only
        now and then.
        """
        return dict(self._make_state())

    @cached_property
    def organization_state(self) -> dict[str, Any]:
        """The part of `state` that this page has changed: the state of its organization.

        It covers this page and the earlier ones of the same organization. Pass the last one of each
        organization to `AuditEvents.pages`: ``{"organizations": [state, …]}``.
        """
        return dict(self._make_organization_state())

    def arrow(self) -> pa.RecordBatch:
        """The events as an Arrow record batch of the schema `AuditEvents.arrow_schema`.

        Raises:
            SettingsError: ``pyarrow`` is not installed.
            ContractError: an event is nested too deeply to be read.
        """
        from tap_audit_events.api.arrow import record_batch  # noqa: PLC0415 - an extra

        return record_batch(self._texts, self.instants, self.organization_id)

    def ocsf(self, mapping: OcsfMapping | None = None) -> list[bytes]:
        """The events as OCSF, API Activity: the JSON text of each, in UTF-8 on one line.

        Args:
            mapping: names the vendor, and says which action type is which activity.

        Raises:
            ContractError: an event is nested too deeply to be read.
        """
        from tap_audit_events.events.ocsf.conversion import to_ocsf  # noqa: PLC0415 - most need none

        return to_ocsf(self._texts, self.instants, self.organization_id, mapping)


def some_of(
    page: EventPage,
    positions: Sequence[int],
    of_state: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> EventPage:
    """A page of some events of another one, with states that are created from those of the other.

    Args:
        page: the other page; its other events need not be kept in memory.
        positions: which events.
        of_state: creates each state.
    """
    of_run, of_organization = page._make_state, page._make_organization_state  # noqa: SLF001 - its module
    return EventPage(
        pick(page.raw, positions),
        pick(page.instants, positions),
        organization_id=page.organization_id,
        shape=page._shape,  # noqa: SLF001 - its module
        state=lambda: of_state(of_run()),
        organization_state=lambda: of_state(of_organization()),
        excluded=page.excluded,
    )


def _page(
    columns: tuple[Sequence[bytes], Sequence[Instant]],
    organization_id: str,
    shape: RecordShape,
    states: tuple[dict[str, Any], dict[str, Any]],
    excluded: int,
) -> EventPage:
    """A page that was pickled or copied."""
    of_run, of_organization = states
    return EventPage(
        *columns,
        organization_id=organization_id,
        shape=shape,
        state=lambda: of_run,
        organization_state=lambda: of_organization,
        excluded=excluded,
    )
