"""The token is not shown if the service sends it back, and goes to no other service."""

import json
from logging import getLogger

import pytest
import requests

from tap_audit_events.config.settings import read_settings
from tap_audit_events.errors.exceptions import RefusedError
from tap_audit_events.sandbox import Fault, Service
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tests.config.test_settings import GOOD
from tests.conftest import Sync
from tests.events.bodies import an_envelope


def echoes(token: str) -> dict[str, bytes]:
    escaped = json.dumps(token)
    return {
        "not JSON": f"<pre>Authorization: Bearer {token}</pre>".encode(),
        "event": f'{{"auditEvents": [{{"id": "x", "token": {escaped}}}]}}'.encode(),
        "cursor": f'{{"auditEvents": [], "nextCursor": {escaped}}}'.encode(),
        "envelope": f"{{{escaped}: 1}}".encode(),
    }


@pytest.mark.parametrize("where", list(echoes("")))
@pytest.mark.parametrize("token", ["acme_pat_" + "x" * 60, 'acme_pat_"quoted\\'])
def test_an_echoed_token_is_never_shown(
    where: str, token: str, service: Service, sync: Sync
) -> None:
    """A response with status 200 may echo it too, and a shortened text may end within the token."""
    service.access_token = token
    service.add_faults([Fault(kind="body", text=echoes(token)[where])])
    done = sync(access_token=token, max_retries=0)
    assert done.exit_code == 1
    assert token not in done.log
    assert json.dumps(token)[1:-1] not in done.log
    assert token[:30] not in done.log
    service.violations.clear()  # the sandbox did not send this cursor


@pytest.mark.parametrize(
    "length", [900, *(pytest.param(n, marks=pytest.mark.long) for n in (300, 7000))]
)
@pytest.mark.parametrize("where", ["not JSON", "event", "cursor", "error"])
def test_the_start_of_a_long_token_is_not_shown(
    where: str, length: int, service: Service, sync: Sync
) -> None:
    """Only a start of the response is shown, and it may end within the token."""
    token = "".join("abcdefghijklmnopqrstuvwxyz"[n * 7 % 26] for n in range(length))
    many = token * (80_000 // length)
    service.access_token = token
    service.add_faults(
        [
            {
                "not JSON": Fault(kind="body", text=many.encode()),
                "event": Fault(kind="body", text=an_envelope(json.dumps([many]).encode())),
                "cursor": Fault(kind="body", text=an_envelope(cursor=many)),
                "error": Fault(kind="status", code=500, msg=many),
            }[where]
        ]
    )
    done = sync(access_token=token, max_retries=0)
    assert done.exit_code == 1
    assert token[:8] not in done.log


def test_the_token_goes_to_the_configured_service_only() -> None:
    """A request to another scheme, host or port is not sent."""
    given = {"base_url": "https://a.example/prefix", "access_token": "x_pat_y"}
    authenticator = AccessTokenAuthenticator(read_settings(GOOD | given), getLogger("test"))
    for url in ("https://a.example/v1", "https://a.example:443/v1"):
        request = requests.Request("GET", url, auth=authenticator).prepare()
        assert request.headers["Authorization"] == "Bearer x_pat_y"
    for url in ("http://a.example/", "https://b.example/", "https://a.example:444/"):
        with pytest.raises(RefusedError):
            requests.Request("GET", url, auth=authenticator).prepare()
