"""`audit-events ship` to Tenzir, which speaks the protocols of real receivers."""

import json
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.exported import history
from tests.cli.failing import refused
from tests.shipping.bulk import Bulk
from tests.shipping.receiver import Receiver
from tests.shipping.ship import EVENTS, IDS, arguments, ids, ship
from tests.shipping.tenzir import BULK, LINES, LOGS, SPLUNK, TOKEN, Tenzir

pytestmark = pytest.mark.integrations

KILLS = 50
SMALL = {"TAP_AUDIT_EVENTS_PAGE_SIZE": "10"}
OWN = {"AUDIT_EVENTS_RECEIVER_SECRET": TOKEN}
LARGE_INTEGER = 12345678901234567890123

KINDS = {
    "JSON Lines": (LINES, "http://127.0.0.1:{port}/ingest"),
    "Splunk": (SPLUNK, "splunk-hec:http://127.0.0.1:{port}"),
    "OpenTelemetry": (LOGS, "otlp:http://127.0.0.1:{port}"),
    "OpenSearch": (BULK, "opensearch:http://127.0.0.1:{port}/audit-events"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tenzir"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_arrives(kind: str, service: Service, command: Command, folder: Path) -> None:
    pipeline, to = KINDS[kind]
    service.add(EVENTS)
    with Tenzir(folder, pipeline) as tenzir:
        url = to.format(port=tenzir.port)
        ship(command, url, "--batch-events", "7", **OWN, **SMALL).raise_for_exit_code()
        service.add(history(5, start=len(EVENTS)))
        ship(command, url, "--no-gzip", **OWN).raise_for_exit_code()

    expected = EVENTS + history(5, start=len(EVENTS))
    assert tenzir.ids == ids(expected)
    if kind == "JSON Lines":
        assert list(map(json.loads, tenzir.lines)) == expected
    assert tenzir.log.count("warning") == 0


def test_one_refused_event_does_not_hold_up_the_others(
    service: Service, command: Command, folder: Path
) -> None:
    """Tenzir refuses a batch for Splunk with an integer of more than 64 bits."""
    large = {**history(1, start=len(EVENTS))[0], "number": LARGE_INTEGER}
    later = history(20, start=len(EVENTS) + 1)
    service.add([*EVENTS, large, *later])
    with Tenzir(folder, SPLUNK) as tenzir:
        to = f"splunk-hec:http://127.0.0.1:{tenzir.port}"
        error = refused(ship(command, to, **OWN), "AE-RECEIVER-EVENT")
        ship(command, to, "--quarantine", "q.jsonl", **OWN).raise_for_exit_code()

    assert large["id"] in error
    assert {*tenzir.ids} == {*IDS, *ids(later)}
    (kept,) = map(json.loads, (command.folder / "q.jsonl").read_text().splitlines())
    assert json.loads(kept["event"]) == large


def test_a_wrong_token_is_refused(service: Service, command: Command, folder: Path) -> None:
    service.add(EVENTS)
    with Tenzir(folder, SPLUNK) as tenzir:
        to = f"splunk-hec:http://127.0.0.1:{tenzir.port}"
        done = ship(command, to, AUDIT_EVENTS_RECEIVER_SECRET="another-token")

    refused(done, "AE-RECEIVER-REFUSED")
    assert tenzir.lines == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_if_both_sides_end_at_random_moments(
    kind: str,
    service: Service,
    command: Command,
    folder: Path,
    record_property: Callable[[str, str], None],
) -> None:
    """`ship` is killed, and then Tenzir is stopped: killed, it loses what it has accepted."""
    pipeline, to = KINDS[kind]
    with Tenzir(folder, pipeline) as tenzir:
        added = _killed_at_random(
            tenzir, to.format(port=tenzir.port), service, command, endings=("both", "run")
        )

    assert {*tenzir.ids} == {*added}
    repeats = len(tenzir.ids) - len(added)
    record_property(f"Repeats in Tenzir, {kind}, after {KILLS} kills", f"{repeats} of {len(added)}")


def test_an_index_has_each_event_once_if_both_sides_end_at_random_moments(
    service: Service, command: Command
) -> None:
    index = Bulk()
    with Receiver(index) as receiver:
        url = f"opensearch:{receiver.root}/audit-events"
        added = _killed_at_random(
            receiver, url, service, command, endings=("both", "receiver", "run")
        )

    assert index.ids == added
    assert sum(len(index.events(request)) for request in receiver.accepted) > len(added)


def _killed_at_random(
    receiver: Tenzir | Receiver,
    to: str,
    service: Service,
    command: Command,
    endings: Sequence[str],
) -> list[str]:
    """Kill runs or restart the receiver, then let a run end; return the ids of all events."""
    choose = random.Random(20261129)
    started = partial(command.started, *arguments(to, "--batch-events", "10"), **OWN, **SMALL)
    added = history(50)
    service.add(added)
    with started() as run:
        assert run.wait(60) == 0  # the first run takes longer
    killed, is_complete, most_seconds = 0, True, 1.0
    while killed < KILLS:
        if is_complete:
            new = history(choose.choice([1, 50, 200]), start=len(added))
            service.add(new)
            added += new
        before = time.monotonic()
        with started() as run:
            try:
                assert run.wait(choose.uniform(0, most_seconds)) == 0, run.stderr.read()
                is_complete, most_seconds = True, time.monotonic() - before
                continue
            except subprocess.TimeoutExpired:
                killed += 1
                is_complete, most_seconds = False, 1.1 * most_seconds
            ending = choose.choice(endings)
            if ending != "receiver":
                run.kill()
                run.wait(60)
            if ending != "run":
                receiver.stop()
                receiver.start()
            if ending == "receiver":
                assert run.wait(60) == 0, run.stderr.read()
                is_complete, most_seconds = True, 1.0
    with started() as run:
        assert run.wait(60) == 0, run.stderr.read()
    return ids(added)
