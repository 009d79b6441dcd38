"""`audit-events ship`: the receiver's secret reaches the receiver, and nobody else."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.sandbox.request import ReceivedRequest
from tests.cli.command import Command
from tests.cli.failing import refused
from tests.shipping.receiver import JsonLines, Receiver, RefusedError, Request, Status
from tests.shipping.ship import EVENTS, IDS, OWN, SECRET, STATE, arguments, ship


@pytest.fixture
def discreet(command: Command, service: Service) -> Iterator[Command]:
    """The command; the test fails if it shows the receiver's secret, or the service learns it."""
    seen: list[str] = []

    def sees(request: ReceivedRequest) -> bool:
        seen.append(f"{request.headers} {request.params}")
        return False

    service.add(EVENTS)
    service.add_faults([Fault(kind="reset", only=sees)])
    yield Command(command.folder, command.settings, secrets=(SECRET,))
    assert SECRET not in "".join(seen)


@pytest.mark.parametrize(
    ("secret", "header"),
    [
        (SECRET, f"Bearer {SECRET}"),
        (f"user:{SECRET}", f"Basic {b64encode(f'user:{SECRET}'.encode()).decode()}"),
        (f"Scheme {SECRET}", f"Scheme {SECRET}"),
    ],
)
def test_it_is_sent_in_the_form_that_it_has(
    secret: str, header: str, discreet: Command, receiver: Receiver
) -> None:
    receiver.authorization = header

    ship(discreet, receiver, AUDIT_EVENTS_RECEIVER_SECRET=secret).raise_for_exit_code()

    assert receiver.ids == IDS
    assert SECRET not in (discreet.folder / STATE).read_text()


def test_it_can_be_in_a_file_and_in_another_header(discreet: Command, receiver: Receiver) -> None:
    (discreet.folder / "secret").write_text(f"{SECRET}\n")

    ship(
        discreet, receiver, "--secret-file", "secret", "--secret-header", "X-Api-Key"
    ).raise_for_exit_code()

    (request,) = receiver.requests
    assert request.headers["x-api-key"] == SECRET
    assert "authorization" not in request.headers


@pytest.mark.parametrize("where", ["/in/{secret}", "/in?key={secret}"])
def test_it_can_be_in_the_url(where: str, discreet: Command, receiver: Receiver) -> None:
    """Then no header has it, and no message shows it, nor takes it for the access token."""
    receiver.faults += [Status(503, body=f"no {SECRET}".encode()), Status(404, {})]

    done = ship(discreet, receiver.root + where, **OWN)

    refused(done, "AE-RECEIVER-REFUSED")
    assert "access_token" not in done.log
    assert {each.path for each in receiver.requests} == {where.replace("{secret}", SECRET)}
    assert all("authorization" not in each.headers for each in receiver.requests)


def test_signs_of_a_url_in_the_secret_are_encoded(
    command: Command, service: Service, receiver: Receiver
) -> None:
    """Else the receiver would see only what is before them; the encoded form is masked too."""
    service.add(EVENTS)
    encoded = "one%23two%26three%2Ffour=="
    receiver.faults.append(Status(404, body=f"no {encoded}".encode()))
    own = {"AUDIT_EVENTS_RECEIVER_SECRET": "one#two&three/four=="}

    done = ship(command, receiver.root + "/in?key={secret}&x=1", **own)

    assert "two" not in refused(done, "AE-RECEIVER-REFUSED")
    assert [each.path for each in receiver.requests] == [f"/in?key={encoded}&x=1"]


@pytest.mark.parametrize(
    "to",
    [
        f"https://user:{SECRET}@collector.example.com/in",
        f"https://{SECRET}@collector.example.com/in",
        f"https://collector.example.com/{SECRET}",
        f"splunk-hec:https://collector.example.com/?index={SECRET}",
        f"http://collector.example.com/?key={SECRET}",
        f"ftp://{SECRET}",
        f"https://[{SECRET}",
    ],
)
def test_a_url_with_the_secret_is_refused_without_showing_it(
    to: str, discreet: Command, service: Service
) -> None:
    refused(ship(discreet, to, **OWN))

    assert service.requests == []


@pytest.mark.parametrize("to", ["http://collector.example.com/in", "http://[2001:db8::1]/in"])
def test_it_is_not_sent_over_plain_http(to: str, discreet: Command, service: Service) -> None:
    assert "must be https" in refused(ship(discreet, to, **OWN))

    assert service.requests == []


def test_a_placeholder_without_a_secret_is_refused(discreet: Command) -> None:
    assert "but there is no secret" in refused(
        ship(discreet, "https://collector.example.com/{secret}")
    )


@pytest.mark.parametrize("secret", ["a\nb", "ä", " a"])
def test_a_secret_that_is_no_header_is_refused(
    secret: str, command: Command, receiver: Receiver, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_text(secret)

    in_file = command(*arguments(receiver, "--secret-file", str(file)))
    in_environment = command(*arguments(receiver), AUDIT_EVENTS_RECEIVER_SECRET=secret)

    assert "one line of printable ASCII" in in_environment.error
    assert in_file.exit_code == 1 or secret == " a"


def test_a_missing_file_is_named(command: Command, receiver: Receiver) -> None:
    error = ship(command, receiver, "--secret-file", "no-such-file").error

    assert error.startswith("AE-SETTINGS: --secret-file ")
    assert "no-such-file" in error


@pytest.mark.parametrize("status", [401, 403])
def test_a_secret_that_was_replaced_is_read_again(
    status: int, discreet: Command, receiver: Receiver
) -> None:
    """The receiver accepts only the new one, which is written while the first request is on."""
    file = discreet.folder / "secret"
    file.write_text("old-secret-of-last-year")

    class Body(JsonLines):
        def events(self, request: Request) -> list[Any]:
            if request.headers["authorization"] != f"Bearer {SECRET}":
                file.write_text(SECRET)
                raise RefusedError(Status(status))
            return super().events(request)

    receiver.protocol = Body()

    ship(discreet, receiver, "--secret-file", "secret").raise_for_exit_code()

    assert receiver.ids == IDS
    assert [each.headers["authorization"] for each in receiver.requests] == [
        "Bearer old-secret-of-last-year",
        f"Bearer {SECRET}",
    ]


def test_a_refused_secret_from_the_environment_ends_the_run(
    discreet: Command, receiver: Receiver
) -> None:
    receiver.authorization = "Bearer another"

    refused(ship(discreet, receiver, **OWN), "AE-RECEIVER-REFUSED")

    assert len(receiver.requests) == 1


@pytest.mark.parametrize("to", ["http", "https"])
def test_proxies_are_used_as_for_the_service(
    to: str, discreet: Command, receiver: Receiver
) -> None:
    """A proxy of the environment is used for https only: over http it could read the events."""
    with Receiver() as proxy:
        environment: dict[str, Any] = {
            f"{to}_proxy": proxy.root,
            "no_proxy": "",
            "NO_PROXY": "",
            "TAP_AUDIT_EVENTS_MAX_RETRIES": "0",
        }
        url = receiver.url if to == "http" else "https://collector.example.com/in"
        done = ship(discreet, url, **environment)
        assert proxy.requests == []
    assert (done.exit_code == 0) == (to == "http")
    if to == "https":
        assert "Tunnel connection failed" in refused(done, "AE-RECEIVER")


def test_the_state_names_no_secret(discreet: Command, receiver: Receiver) -> None:
    ship(discreet, f"{receiver.url}?key={{secret}}", **OWN).raise_for_exit_code()

    state = json.loads((discreet.folder / STATE).read_text())
    assert state["receiver"] == receiver.url
