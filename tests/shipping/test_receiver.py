"""The receiver of the tests notices what a receiver must not be sent, and misbehaves on request."""

import gzip
import json
from collections.abc import Mapping
from types import MappingProxyType

import pytest
import requests

from tests.shipping.receiver import Closes, Receiver, Slow, Status, TakesHalf

EVENTS = [{"id": "e1"}, {"id": "e2"}]


def post(
    to: Receiver,
    key: str = "k1",
    events: list[dict[str, str]] = EVENTS,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> int:
    lines = "".join(json.dumps(event) + "\n" for event in events)
    usual = {
        "Content-Type": "application/x-ndjson",
        "Content-Encoding": "gzip",
        "Idempotency-Key": key,
    }
    body = gzip.compress(lines.encode())
    return requests.post(to.url, body, headers={**usual, **headers}, timeout=60).status_code


def test_it_keeps_what_it_accepts_and_tells_repeats_apart(receiver: Receiver) -> None:
    assert [post(receiver), post(receiver), post(receiver, "k2", [{"id": "e3"}])] == [200] * 3

    assert receiver.ids == ["e1", "e2", "e1", "e2", "e3"]
    assert receiver.without_repeats == ["e1", "e2", "e3"]


def test_each_fault_is_for_one_request(receiver: Receiver) -> None:
    receiver.faults += [Status(429, {"Retry-After": "1"}), TakesHalf(503), Slow(0.01)]

    assert [post(receiver) for _ in range(4)] == [429, 503, 200, 200]
    assert receiver.ids == ["e1", "e1", "e2", "e1", "e2"]


@pytest.mark.parametrize("after_taking", [False, True])
def test_it_closes_the_connection(receiver: Receiver, after_taking: bool) -> None:
    receiver.faults.append(Closes(after_taking))

    with pytest.raises(requests.ConnectionError):
        post(receiver)

    assert receiver.ids == ["e1", "e2"] * after_taking


def test_it_refuses_what_it_is_told_to(receiver: Receiver) -> None:
    receiver.authorization = "Bearer its-own"
    assert post(receiver) == 401
    receiver.authorization, receiver.refused_word = None, "e2"
    assert [post(receiver), post(receiver, "k2", EVENTS[:1])] == [400, 200]
    receiver.max_bytes = 10
    assert post(receiver, "k3") == 413
    assert receiver.ids == ["e1"]


def test_it_comes_back_on_the_same_port(receiver: Receiver) -> None:
    receiver.stop()
    with pytest.raises(requests.ConnectionError):
        post(receiver)

    receiver.start()

    assert post(receiver) == 200


def test_it_notices_what_it_must_not_be_sent(receiver: Receiver) -> None:
    assert post(receiver) == 200
    assert post(receiver, events=EVENTS[:1]) == 400
    assert post(receiver, headers={"Content-Type": "text/plain"}) == 400
    assert post(receiver, headers={"Authorization": f"Bearer {receiver.secrets[0]}"}) == 200

    assert len(receiver.violations) == 3
    receiver.violations.clear()
