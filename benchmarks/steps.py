"""Measures the steps in which a body becomes a page; it runs in a separate process."""

import gc
import sys
import timeit
from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from benchmarks.shapes import DAYS, SEED
from tap_audit_events.events.envelope import read_envelope
from tap_audit_events.events.page import parse_page
from tap_audit_events.events.text_repair import storable
from tap_audit_events.sandbox import generate

EVENTS: Final = 1000
"""The number of events on the page."""

REPETITIONS: Final = 500

STEPS: Final[dict[str, Callable[[bytes], object]]] = {
    "checking that it is UTF-8 and can be stored": storable,
    "finding where each event begins and ends": read_envelope,
    "all of it, with ids, times and instants": parse_page,
}


def microseconds_per_event(until: datetime) -> dict[str, float]:
    """Return the shortest time of each step, for each event of a page."""
    events = list(generate(EVENTS, DAYS, SEED, until))
    body = msgspec.json.encode({"auditEvents": events, "nextCursor": "next"})
    parse_page(bytes(bytearray(body)))  # the memory of a body that was freed is kept for the next
    gc.disable()
    return {
        name: min(timeit.repeat(lambda: step(body), number=1, repeat=REPETITIONS)) / EVENTS * 1e6  # noqa: B023 - called here
        for name, step in STEPS.items()
    }


if __name__ == "__main__":
    found = microseconds_per_event(datetime.fromisoformat(sys.argv[1]))
    sys.stdout.write(msgspec.json.encode(found).decode())
