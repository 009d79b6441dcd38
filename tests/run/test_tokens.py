"""Organizations of a run: what those with one token share, and their log lines."""

from pathlib import Path

from requests import PreparedRequest, Request, Response

from tap_audit_events.config.settings import read_settings
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.run.tokens import token_groups
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.rate_limiter import RequestCounts
from tests.config.test_settings import GOOD
from tests.service.scripted import LoggedLines
from tests.shared_server import an_id


def sent(authenticator: AccessTokenAuthenticator) -> PreparedRequest:
    """Return a request with the current token."""
    return authenticator(Request("GET", f"{GOOD['base_url']}/v1/x").prepare())


def test_organizations_are_held_only_if_there_are_other_tokens() -> None:
    """With one token, nothing else can be requested while the service limits its requests."""
    requests = RequestCounts(1)
    transport = Runtime().new_transport(GOOD["base_url"])
    groups = []
    for tokens in ("a", "ab"):
        organizations = [
            {"organization_id": an_id(number), "access_token": f"acme_pat_{token}"}
            for number, token in enumerate(tokens)
        ]
        given = GOOD | {"access_token": None, "organization_id": None}
        settings = read_settings(given | {"organizations": organizations})
        runtime = Runtime(shuffle=list)
        groups.append(
            token_groups(settings, requests, transport, runtime=runtime, logger=LoggedLines())[0]
        )
    for group in groups:
        assert not group.is_held
        with group.limiter.permit() as permit:
            group.limiter.rate_limited(permit, 60)
    assert [group.is_held for group in groups] == [False, True]


def test_token_files_with_the_same_token_may_get_different_new_tokens(tmp_path: Path) -> None:
    """A new token is sent for all organizations whose file contains it, and for no others."""
    files = tmp_path / "one", tmp_path / "other"
    for file in files:
        file.write_text("acme_pat_first")

    organizations = [
        {"organization_id": an_id(number), "access_token_file": str(file)}
        for number, file in enumerate(files)
    ]
    given = GOOD | {"access_token": None, "organization_id": None, "organizations": organizations}
    settings = read_settings(given)
    runtime, requests = Runtime(shuffle=list), RequestCounts(1)
    transport = runtime.new_transport(GOOD["base_url"])
    groups = token_groups(settings, requests, transport, runtime=runtime, logger=LoggedLines())
    assert groups[0].limiter is groups[1].limiter
    assert not any(group.has_others for group in groups)
    one, other = (
        group.client(each).authenticator
        for group, each in zip(groups, settings.each(), strict=True)
    )

    files[1].write_text("acme_pat_second")
    refused = Response()
    refused.request = sent(other)

    assert groups[0].client(settings).authenticator is one
    assert other.has_new_token(refused)
    assert sent(other).headers["Authorization"] == "Bearer acme_pat_second"
    assert sent(one).headers["Authorization"] == "Bearer acme_pat_first"
