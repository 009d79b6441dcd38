"""The events of a page that no run has delivered yet, as a face writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from tap_audit_events.errors.exceptions import ServiceError
from tap_audit_events.events.exact_json import JsonText, read_record
from tap_audit_events.events.instants import Instant
from tap_audit_events.extraction.delivery import pick
from tap_audit_events.extraction.planning.window_reader import WindowPage
from tap_audit_events.run.organization import Organization


class NewEvents:
    """The new events of one page; the last page of an organization has none.

    They are written in a ``with`` block. At its end they count as delivered; after an error, only
    those that `records` has passed on and got the next request for. So the state never covers an
    event that was not written. An event that cannot be written ends only its own organization, if
    there are several.

    Attributes:
        organization: whose events they are; after the block, its state covers them.
        is_last: whether nothing follows: the organization was read to its end or has an error.
        texts: the JSON text of each event.
        instants: the time of each event.
    """

    def __init__(self, organization: Organization, read: WindowPage | None) -> None:
        self.organization = organization
        self.is_last = read is None
        self.texts: Sequence[JsonText] = ()
        self.instants: Sequence[Instant] = ()
        self._read = read
        self._positions: Sequence[int] = ()
        self._written = 0
        if read is not None:
            organization.has_read = True
            self._positions = organization.delivery.choose(read)
            self.texts = pick(read.page.texts, self._positions)
            self.instants = pick(read.page.instants, self._positions)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if self._read is not None:
            written = self._written if error else len(self._positions)
            self.organization.delivery.commit(self._read, self._positions, written)
        if isinstance(error, ServiceError) and self.organization.settings.is_one_of_several:
            self.organization.error = error
            return True
        return False

    def record_texts(self) -> Sequence[JsonText]:
        """The events as JSON in the shape of the settings.

        `ContractError` if an event is nested too deeply to be changed.
        """
        shape = self.organization.settings.record_shape
        return self.texts if shape.is_plain else list(map(shape.apply, self.texts))

    def records(self) -> Iterator[dict[str, Any]]:
        """The same as objects; each counts as written when the next one is requested.

        `ContractError` if an event is nested too deeply to be read.
        """
        shape = self.organization.settings.record_shape
        for text in self.texts:
            yield read_record(shape.apply(text))
            self._written += 1

    def release(self) -> None:
        """Release the page: it is large, and the next page may follow much later."""
        self.texts = self.instants = self._positions = ()
        self._read = None
