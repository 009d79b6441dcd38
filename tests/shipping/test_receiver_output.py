"""A receiver as an output: which state is stored after an error."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tap_audit_events.api.event_page import EventPage
from tap_audit_events.events.instants import EARLIEST
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.outputs.receivers.endpoint import Secret
from tap_audit_events.outputs.receivers.kinds import SendOptions, open_receiver
from tap_audit_events.outputs.receivers.receiver_state import ReceiverState
from tests.shipping.receiver import Receiver


def a_page(number: int, count: int) -> EventPage:
    texts = [b'{"id":"%d-%d"}' % (number, each) for each in range(count)]
    return EventPage(
        texts,
        [EARLIEST] * count,
        organization_id="o",
        shape=RecordShape(),
        state=lambda: {"page": number},
    )


def test_the_state_never_covers_what_was_not_sent(tmp_path: Path, receiver: Receiver) -> None:
    """A page that waits for its batch is lost if the state covers it."""

    def texts(page: EventPage) -> Sequence[bytes]:
        if page.state == {"page": 3}:
            raise ValueError
        return page.raw

    options = SendOptions(
        texts=texts,
        batch_events=10,
        compresses=True,
        line_type=None,
        max_retries=0,
        timeout_seconds=10,
        user_agent="test",
    )
    path = tmp_path / "s.json"
    with open_receiver(receiver.url, path, Secret(), options, Stop()) as opened:
        opened.output.begin()
        opened.output.write(a_page(1, 10))
        opened.output.write(a_page(2, 5))
        with pytest.raises(ValueError):  # noqa: PT011 - its own
            opened.output.write(a_page(3, 5))
        opened.output.discard()

    assert len(receiver.ids) == 10
    assert ReceiverState(path, receiver.url).read() == {"page": 1}
