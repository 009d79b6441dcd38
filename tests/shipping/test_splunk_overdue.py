"""A batch that Splunk has not acknowledged, and refuses when it is sent again."""

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


def test_the_next_event_is_not_refused_in_place_of_an_overdue_one() -> None:
    responses = [_ACCEPTED, _INVALID]
    stop = Stop()
    connection: Any = SimpleNamespace(name="splunk", url="https://splunk.example.com", stop=stop)
    connection.at = lambda _: connection
    connection.post = lambda path, *_: (
        Received(200, {}, b'{"acks":{}}') if path == "/ack" else responses.pop(0)
    )
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
    with pytest.raises(ReceiverError, match="Invalid data"):
        delivery.deliver([second])
    assert not kept
    assert delivery.settled == 0
