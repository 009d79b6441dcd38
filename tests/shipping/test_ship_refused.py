"""`audit-events ship`: what a receiver refuses for good, an event or everything."""

import certifi
import pytest

from tap_audit_events.sandbox import Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.failing import SMALL_PAGES, refused
from tests.shipping.receiver import Receiver, Status
from tests.shipping.ship import EVENTS, IDS, OWN, ship, shipped_later, state_of


def test_a_batch_that_is_too_large_is_split(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(EVENTS)
    receiver.max_bytes = 3_000

    done = ship(command, receiver).raise_for_exit_code()

    assert receiver.ids == IDS
    assert done.warnings == []


def test_a_status_counts_without_its_body(
    service: Service, command: Command, receiver: Receiver
) -> None:
    """Some receivers close the connection after 413, before all of the response has arrived."""
    service.add(EVENTS)
    receiver.faults.append(Status(413, {"Content-Encoding": "gzip"}, b"cut"))

    done = ship(command, receiver).raise_for_exit_code()

    assert done.warnings == []
    assert receiver.ids == IDS
    assert len(receiver.requests) == 3


@pytest.mark.parametrize("status", [400, 413, 422])
def test_an_event_that_is_refused_is_found(
    status: int, service: Service, command: Command, receiver: Receiver
) -> None:
    """All before it have arrived, the error says why, and the next run repeats at most a page."""
    service.add(EVENTS)
    receiver.refused_word, receiver.refused_status = '"00027"', status

    error = refused(ship(command, receiver, **SMALL_PAGES), "AE-RECEIVER-EVENT")

    assert f"{receiver.url}: status {status}" in error
    assert "the event of 2024-05-06T15:36:00Z, " in error
    assert '"id":"00027"' in error
    assert receiver.ids == IDS[:27]
    receiver.refused_word = None
    assert shipped_later(command, receiver, **SMALL_PAGES) == IDS[20:]


def test_an_event_that_is_too_large_for_the_receiver(
    service: Service, command: Command, receiver: Receiver
) -> None:
    service.add([*EVENTS[:7], an_event(id="big", at="2024-06-01T00:00:00Z", x="x" * 5_000)])
    receiver.max_bytes = 4_000

    error = refused(ship(command, receiver), "AE-RECEIVER-EVENT")

    assert "status 413" in error
    assert '"id":"big"' in error
    assert receiver.ids == IDS[:7]


@pytest.mark.parametrize("status", [401, 403, 404, 405, 415])
def test_a_refusal_of_the_request_ends_the_run_at_once(
    status: int, service: Service, command: Command, receiver: Receiver
) -> None:
    service.add(EVENTS)
    receiver.faults.append(Status(status, body=b"because of this"))

    error = refused(ship(command, receiver, **OWN), "AE-RECEIVER-REFUSED")

    assert f"{receiver.url}: status {status}, body 'because of this'" in error
    assert len(receiver.requests) == 1
    assert state_of(command) is None
    assert shipped_later(command, receiver) == IDS


@pytest.mark.parametrize("bundle", [None, certifi.where(), "missing"])
def test_a_certificate_of_an_unknown_authority_is_refused(
    bundle: str | None, untrusted_address: str, service: Service, command: Command
) -> None:
    """The error says how to trust it."""
    service.add(EVENTS)
    others = dict.fromkeys(("CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"), "")
    bundles = {**others, "REQUESTS_CA_BUNDLE": bundle or ""}

    error = refused(ship(command, untrusted_address, **OWN, **bundles), "AE-RECEIVER-REFUSED")

    assert "REQUESTS_CA_BUNDLE" in error
    assert "base_url" not in error


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_redirect_is_not_followed(
    status: int, service: Service, command: Command, receiver: Receiver
) -> None:
    """Neither the events nor the secret reach the other host."""
    service.add(EVENTS)
    with Receiver() as other:
        receiver.faults.append(Status(status, {"Location": other.url}))

        error = refused(ship(command, receiver, **OWN), "AE-RECEIVER-REFUSED")

    assert f"status {status} to '{other.url}', which is not followed" in error
    assert other.requests == []
