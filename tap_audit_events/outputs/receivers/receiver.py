"""The interface of a receiver: the form in which it accepts events, and what it responds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.events.instants import Instant
from tap_audit_events.outputs.receivers.connection import Connection

Texts: TypeAlias = Callable[[EventPage], Sequence[bytes]]
"""The JSON texts of a page's events: as the service sent them, or in another form."""


class Item(NamedTuple):
    """An event on its way to a receiver.

    Attributes:
        body: the event in the form of the receiver.
        text: the event as the service sent it.
        instant: its time.
        organization_id: UUID of its organization.
    """

    body: bytes
    text: bytes
    instant: Instant
    organization_id: str


@dataclass(frozen=True)
class Outcome:
    """What became of a batch that the receiver has taken.

    Attributes:
        refused: why it refuses events for good, by their positions.
        again: positions of events that it has not taken for now.
        why_again: why it has not taken the first of them.
    """

    refused: Mapping[int, str] = field(default_factory=dict)
    again: Sequence[int] = ()
    why_again: str = ""


class Receiver(Protocol):
    """A receiver. The caller splits a batch that it refuses, and retries."""

    SCHEME: ClassVar[str] = "Bearer"
    """What comes before a secret in the Authorization header."""

    def __init__(self, connection: Connection) -> None: ...

    def bodies(self, page: EventPage, texts: Sequence[bytes], /) -> Sequence[bytes]:
        """Each event in the form of the receiver.

        Args:
            page: the events.
            texts: their JSON texts, which may have another form than that of the service.
        """

    def send(self, batch: Sequence[Item]) -> Outcome:
        """Send a batch, once.

        Raises:
            ReceiverError: it was not accepted.
        """

    def wait(self) -> None:
        """Wait until the receiver has acknowledged everything that was sent.

        Raises:
            ReceiverError: it does not.
        """
