"""The settings of several organizations: tokens, the environment, the connection test, errors."""

import json

from tap_audit_events.errors.redaction import MASK
from tests.running import run
from tests.shared_server import SHARED, SharedServer, a_service, an_id


def test_each_organization_may_have_its_own_token() -> None:
    """An organization without one has the common token; no token is shown."""
    tokens = ["acme_pat_own-token-of-one", SHARED]
    services = [a_service(n, 5, access_token=token) for n, token in enumerate(tokens)]
    with SharedServer(services).served() as shared:
        items = [
            {"organization_id": an_id(0), "access_token": tokens[0]},
            {"organization_id": an_id(1)},
        ]
        done = shared.run(organizations=items).raise_for_exit_code()
        wrong = shared.run(organizations=[items[1], {**items[0], "access_token": "acme_pat_wrong"}])
    assert len(done.records) == 10
    assert wrong.exit_code == 1
    assert wrong.errors[-1].startswith(f"AE-401: {an_id(0)}: ")
    done.check_discreet(tokens)
    wrong.check_discreet([*tokens, "acme_pat_wrong"])


def test_organizations_in_the_environment_are_json() -> None:
    """A platform sets the variable to a JSON list."""
    with SharedServer([a_service(n, 3) for n in range(2)]).served() as shared:
        items = [{"organization_id": an_id(n)} for n in range(2)]
        environment = {
            "TAP_AUDIT_EVENTS_BASE_URL": shared.base_url,
            "TAP_AUDIT_EVENTS_ACCESS_TOKEN": SHARED,
            "TAP_AUDIT_EVENTS_ORGANIZATIONS": json.dumps(items),
        }
        done = run(None, "--config=ENV", environment=environment).raise_for_exit_code()
    assert len(done.records) == 6


def test_no_output_shows_a_token() -> None:
    """The token of any organization is masked in STATE, in the log and in other output."""
    tokens = [f"acme_pat_{n}-of-its-own" for n in range(3)]
    services = [a_service(n, 3, access_token=token) for n, token in enumerate(tokens)]
    services[2].add_faults(["status:code=403,msg=acme_pat_0-of-its-own@*"])
    with SharedServer(services).served() as shared:
        items = [
            {"organization_id": each.organization_id, "access_token": each.access_token}
            for each in services
        ]
        state = {"bookmarks": {"another": {"note": tokens[1], tokens[2]: 1}}}
        maps = {"audit_events": {"note": f"'{tokens[1]}'"}}
        settings = {"access_token": None, "organizations": items}
        runs = [
            shared.run(state=state, **settings),
            shared.run(stream_maps=maps, **settings),
            shared.run("--about", **settings),
            shared.run("--discover", **settings),
            shared.run("--test", **settings),
            shared.run(base_url=f"{shared.base_url}/{tokens[0]}", **settings),
        ]
    for done in runs:
        done.check_discreet(tokens)
    assert runs[0].exit_code == 1
    assert len(runs[0].records) == 6
    assert MASK in json.dumps(runs[0].state)
    assert MASK in runs[0].errors[-1]
    assert runs[5].errors == [
        "AE-SETTINGS: base_url contains the access token: remove it from there"
    ]


def test_a_list_that_is_not_json_shows_no_token() -> None:
    """For example, a quotation mark is missing in the variable."""
    environment = {
        "TAP_AUDIT_EVENTS_BASE_URL": "https://api.example.com",
        "TAP_AUDIT_EVENTS_ORGANIZATIONS": '[{"access_token": "acme_pat_in-broken-json]',
    }
    done = run(None, "--config=ENV", environment=environment)
    done.check_discreet(["acme_pat_in-broken-json"])
    assert done.errors[0].startswith("AE-SETTINGS: organizations must be a list of objects")


def test_one_or_several_organizations_may_be_set_but_not_both() -> None:
    """An organization without any token is refused too."""
    settings = {
        "base_url": "https://api.example.com",
        "organizations": [{"organization_id": an_id(1)}],
    }
    both = run(settings | {"organization_id": an_id(1), "access_token": SHARED})
    assert both.errors == [
        "AE-SETTINGS: organization_id and organizations are both set: set only one of them"
    ]
    none = run(settings)
    assert none.errors[0].startswith("AE-SETTINGS: organizations[0] has no access_token")
