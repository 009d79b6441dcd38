"""A batch that Splunk has not acknowledged, and what it refuses when it is sent again."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from tap_audit_events.events.instants import Instant
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.outputs.receivers.delivery import Delivery
from tap_audit_events.outputs.receivers.receiver import Item
from tap_audit_events.outputs.receivers.responses import Received, ReceiverError
from tap_audit_events.outputs.receivers.splunk import ACK_SECONDS, Splunk

_ACCEPTED = Received(200, {}, b'{"code":0,"ackId":1}')
_INVALID = Received(400, {}, b'{"code":6,"text":"Invalid data","invalid-event-number":0}')
_NONE = Received(200, {}, b'{"acks":{}}')


@pytest.mark.parametrize(
    ("again", "poll", "reason"),
    [(_INVALID, _NONE, "Invalid data"), (_ACCEPTED, Received(413, {}, b""), "status 413")],
)
def test_the_next_event_is_not_refused_in_place_of_an_overdue_one(
    again: Received, poll: Received, reason: str
) -> None:
    """Nor if Splunk refuses the request for the acknowledgment."""
    responses = {"/event": [_ACCEPTED, again], "/ack": [_NONE, poll]}
    stop = Stop()
    connection: Any = SimpleNamespace(name="splunk", url="https://splunk.example.com", stop=stop)
    connection.at = lambda _: connection
    connection.post = lambda path, *_: responses[path].pop(0)
    kept: list[Any] = []
    times = count(0.0, ACK_SECONDS)
    receiver = Splunk(connection, lambda: next(times))
    delivery = Delivery(receiver, "splunk", max_retries=0, stop=stop, keep_refused=kept.extend)
    first, second = (
        Item(body, body, Instant("2024-01-01T00:00:00"), "org") for body in (b"first", b"second")
    )
    delivery.deliver([first])
    with pytest.raises(ReceiverError, match="not acknowledged"):
        delivery.wait()
    with pytest.raises(ReceiverError, match=reason):
        delivery.deliver([second])
    assert not kept
    assert delivery.settled == 0
