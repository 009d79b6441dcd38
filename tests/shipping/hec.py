"""Splunk's HTTP Event Collector as a protocol of the tests' receiver."""

import json
import re
from typing import Any

from tests.shipping.receiver import RefusedError, Request, Status

TOKEN = "b0221cd8-c4b4-465a-9a3c-273e3a75aa29"
CHANNEL = "x-splunk-request-channel"
ENVELOPE = {"time", "event", "index", "source", "sourcetype", "host"}

_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DECODER = json.JSONDecoder()


class Hec:
    """Takes envelopes; the events that the receiver keeps are what is inside of them.

    Attributes:
        acknowledges: whether the token has indexer acknowledgment.
        polls: how many polls in a row find nothing acknowledged, for each that does.
        lost: how many batches are accepted, but never acknowledged.
        restarts_after: after so many batches the collector forgets all, once.
        poison: a batch with this word gets 400 and the number of the event.
        channels: the channels of all requests.
        envelopes: all envelopes that were accepted.
    """

    def __init__(self) -> None:
        self.acknowledges = False
        self.polls = 0
        self.lost = 0
        self.poison = ""
        self.restarts_after = 0
        self.channels: set[str] = set()
        self.envelopes: list[dict[str, Any]] = []
        self._accepted = 0
        self._unacknowledged: set[int] = set()
        self._polled = 0

    def events(self, request: Request) -> list[Any]:
        if request.headers.get("authorization") != f"Splunk {TOKEN}":
            raise ValueError("another token")
        channel = request.headers.get(CHANNEL, "")
        if not _GUID.fullmatch(channel):
            raise ValueError(f"the channel {channel!r}")
        self.channels.add(channel)
        if request.path == "/services/collector/ack":
            if not self.acknowledges:
                raise ValueError("a poll without acknowledgment")
            return []
        if request.path != "/services/collector/event":
            raise ValueError(f"the path {request.path}")
        envelopes = decoded(request.body)
        if unknown := {name for each in envelopes for name in each} - ENVELOPE:
            raise ValueError(f"the fields {unknown}")
        for number, each in enumerate(envelopes):
            if self.poison and self.poison in json.dumps(each["event"]):
                # Splunk has indexed the events before it.
                self.envelopes += envelopes[:number]
                raise RefusedError(refusal(6, "Invalid data format", number))
        self.envelopes += envelopes
        return [each["event"] for each in envelopes]

    def response(self, request: Request) -> Status:
        body: dict[str, Any] = {"text": "Success", "code": 0}
        if request.path.endswith("/ack"):
            self._polled += 1
            is_due = self._polled % (self.polls + 1) == 0
            asked = json.loads(request.body)["acks"]
            found = {each for each in asked if is_due and each in self._unacknowledged}
            self._unacknowledged -= found
            body = {"acks": {str(each): each in found for each in asked}}
        elif self.acknowledges:
            body["ackId"] = self._accepted
            if self.lost:
                self.lost -= 1
            else:
                self._unacknowledged.add(self._accepted)
            self._accepted += 1
            if self._accepted == self.restarts_after:
                self.restart()
        return Status(200, body=json.dumps(body).encode())

    def restart(self) -> None:
        """Forget all batches, and count from 0 again."""
        self.restarts_after = 0
        self._accepted = 0
        self._unacknowledged.clear()


def decoded(body: bytes) -> list[dict[str, Any]]:
    text, place, found = body.decode(), 0, []
    while place < len(text):
        value, place = _DECODER.raw_decode(text, place)
        found.append(value)
        place += text.startswith("\n", place)
    return found


def refusal(code: int, text: str, number: int | None = None, status: int = 400) -> Status:
    """A response with one of Splunk's codes."""
    body: dict[str, Any] = {"text": text, "code": code}
    if number is not None:
        body["invalid-event-number"] = number
    return Status(status, body=json.dumps(body).encode())
