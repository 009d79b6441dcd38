"""Several organizations in one run: each has its own bookmark and its own errors."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.errors.exceptions import OrganizationsError, service_error
from tap_audit_events.events.exact_json import JsonText
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.sandbox import Fault
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.extraction.planning.test_parallel import EVEN, ShiftedService
from tests.running import Run, run
from tests.shared_server import SHARED, SharedServer, a_service, an_id
from tests.singer.test_lanes import WriterIntoMemory


def keys(done: Run) -> list[tuple[str, str]]:
    return [(record["organization_id"], record["id"]) for record in done.records]


def partitions(done: Run) -> dict[str, dict[str, Any]]:
    each = done.state["bookmarks"]["audit_events"]["partitions"]
    return {one["context"]["organization_id"]: one for one in each}


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("selected", [True, False])
def test_each_organization_is_read_whole_and_in_order(selected: bool, concurrency: int) -> None:
    """This holds in both lanes; the key consists of the organization and the id."""
    counts = [0, 1, 25, 95, 0, 10]
    with SharedServer([a_service(n, count) for n, count in enumerate(counts)]).served() as shared:
        maps = {} if selected else {"stream_maps": {"audit_events": {"actor": "__NULL__"}}}
        done = shared.run(page_size=10, concurrency=concurrency, **maps).raise_for_exit_code()
        before = len(shared.several.requests)
        again = shared.run(state=done.state, **maps).raise_for_exit_code()
        assert len(shared.several.requests) - before == len(counts)
    for number, count in enumerate(counts):
        ids = [key[1] for key in keys(done) if key[0] == an_id(number)]
        assert ids == [f"e{n:04}" for n in range(count)]
    assert len(done.records) == sum(counts)
    assert again.records == []
    (schema,) = [each for each in done.messages if each["type"] == "SCHEMA"]
    assert schema["key_properties"] == ["organization_id", "id"]
    assert set(partitions(done)) == {an_id(n) for n, count in enumerate(counts) if count}


@pytest.mark.parametrize("several", [True, False])
def test_a_catalog_for_one_or_several_organizations_serves_the_other_too(several: bool) -> None:
    """The key is always that of the records: with another key, events would replace each other."""
    with SharedServer([a_service(n, 5) for n in range(2)]).served() as shared:
        one = {"organizations": None, "organization_id": an_id(0)}
        catalog = json.loads(shared.run("--discover", **one if several else {}).stdout)
        done = shared.run(catalog=catalog, **{} if several else one).raise_for_exit_code()
        wanted = shared.run(**{} if several else one).raise_for_exit_code()
    schema = [each for each in done.messages if each["type"] == "SCHEMA"]
    assert schema == [each for each in wanted.messages if each["type"] == "SCHEMA"]


def test_quiet_organizations_cost_one_request_each_and_few_log_lines() -> None:
    """An organization without events adds no line to the log."""
    services = [a_service(n, 0) for n in range(40)]
    with SharedServer(services).served() as shared:
        done = shared.run(concurrency=8).raise_for_exit_code()
        assert len(shared.several.requests) == 40
    assert [line for line in done.log.splitlines() if " | INFO " in line and "Done" in line]
    assert len(done.log.splitlines()) < 12


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("status:code=401@*", "AE-401"),
        ("status:code=403@*", "AE-403"),
        ("status:code=404@*", "AE-404"),
        ("same-cursor@*", "AE-CURSOR-REPEATED"),
        ("body:text=%7B%7D@*", "AE-ENVELOPE"),
    ],
)
def test_an_organization_that_fails_does_not_end_the_others(fault: str, code: str) -> None:
    """The others are read to their end; the last line has the code and the organization."""
    services = [a_service(n, 30) for n in range(4)]
    services[1].add_faults([fault])
    with SharedServer(services).served() as shared:
        done = shared.run(page_size=10)
    assert done.exit_code == 1
    for number in (0, 2, 3):
        assert [key[1] for key in keys(done) if key[0] == an_id(number)] == [
            f"e{n:04}" for n in range(30)
        ]
    assert done.errors[-1].startswith(f"{code}: {an_id(1)}: ")
    assert done.errors[0].startswith("AE-ORGANIZATIONS: ")
    assert "1 of 4" in done.errors[0]


@contextmanager
def an_event_that_cannot_be_written() -> Iterator[str]:
    """Make an event fail when it is changed, as one nested to the limit does; yield its id."""
    real = RecordShape.apply

    def apply(self: RecordShape, text: JsonText) -> JsonText:
        if b'"e0017"' in bytes(text) and self.organization_id == an_id(1):
            raise service_error("AE-NESTING", details="deep")
        return real(self, text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordShape, "apply", apply)
        yield "e0017"


@pytest.mark.parametrize("selected", [True, False])
def test_an_event_that_cannot_be_written_ends_only_its_organization(selected: bool) -> None:
    """STATE covers exactly the events of that organization that were written."""
    maps = {} if selected else {"stream_maps": {"audit_events": {"actor": "__NULL__"}}}
    writer = WriterIntoMemory()
    with SharedServer([a_service(n, 30) for n in range(3)]).served() as shared:
        config = shared.settings | {"page_size": 10, **maps}
        with an_event_that_cannot_be_written(), pytest.raises(OrganizationsError) as raised:
            TapAuditEvents(config=config, message_writer=writer).sync_all()
        *messages, state = writer.messages
        again = shared.run(page_size=10, state=state["value"]).raise_for_exit_code()
    assert {name: error.code for name, error in raised.value.errors.items()} == {
        an_id(1): "AE-NESTING"
    }
    records = [each["record"] for each in messages if each["type"] == "RECORD"]
    written = [(each["organization_id"], each["id"]) for each in records]
    assert sorted(written + keys(again)) == sorted(
        (an_id(number), f"e{n:04}") for number in range(3) for n in range(30)
    )
    assert {key[0] for key in keys(again)} == {an_id(1)}


def test_windows_that_do_not_fit_end_only_their_organization() -> None:
    """The error is noticed during delivery, but the others are read to their end."""
    shifted = ShiftedService(
        organization_id=an_id(1), access_token=SHARED, page_latency_seconds=0.05
    )
    shifted.seconds = (3, 3)
    shifted.add(EVEN)
    others = [a_service(number, 30, page_latency_seconds=0.05) for number in (0, 2)]
    with SharedServer([shifted, *others]).served() as shared:
        done = shared.run(page_size=10, start_date="2024-04-30T23:00:00Z")
    assert done.errors[-1].startswith(f"AE-WINDOW: {an_id(1)}: ")
    for number in (0, 2):
        assert sum(key[0] == an_id(number) for key in keys(done)) == 30


def test_a_failed_organization_resumes_where_it_stopped() -> None:
    """Its events that were delivered are not delivered again."""
    services = [a_service(n, 30) for n in range(3)]
    services[1].add_faults([Fault(kind="status", code=403, when="3")])
    with SharedServer(services).served() as shared:
        done = shared.run(page_size=10, concurrency=1)
        again = shared.run(state=done.state, page_size=10).raise_for_exit_code()
    assert done.exit_code == 1
    assert sorted(keys(done) + keys(again)) == sorted(
        (an_id(number), f"e{n:04}") for number in range(3) for n in range(30)
    )
    assert {key[0] for key in keys(again)} == {an_id(1)}


def test_a_state_of_one_organization_serves_several_and_one_again() -> None:
    """Nothing is repeated, and the other organizations keep their bookmarks."""
    services = [a_service(n, 20) for n in range(3)]
    with SharedServer(services).served() as shared:
        alone = {"organizations": None, "organization_id": an_id(1)}
        first = shared.run(**alone).raise_for_exit_code()
        several = shared.run(state=first.state).raise_for_exit_code()
        services[1].add([an_event(id="new", at="2024-05-06T09:00:00Z")])
        back = shared.run(state=several.state, **alone).raise_for_exit_code()
        fewer = shared.run(
            state=back.state, organizations=[{"organization_id": an_id(2)}]
        ).raise_for_exit_code()
    assert len(first.records) == 20
    assert {key[0] for key in keys(several)} == {an_id(0), an_id(2)}
    assert "replication_key_value" not in several.state["bookmarks"]["audit_events"]
    assert back.ids == ["new"]
    assert fewer.records == []
    assert set(partitions(fewer)) == {an_id(n) for n in range(3)}
    assert partitions(fewer)[an_id(1)]["replication_key_value"] == "2024-05-06T09:00:00Z"


@pytest.mark.parametrize(("part", "key"), [("coverage", "digest"), ("watermark", "ids")])
def test_a_state_that_cannot_be_used_ends_only_its_organization(part: str, key: str) -> None:
    """The line names the organization, whose state stays as it is; the others are read."""
    services = [a_service(n, 5) for n in range(3)]
    with SharedServer(services).served() as shared:
        catalog = json.loads(shared.run("--discover").raise_for_exit_code().stdout)
        for stream in catalog["streams"]:
            (of_stream,) = [each for each in stream["metadata"] if not each["breadcrumb"]]
            of_stream["metadata"]["selected"] = True
        state = shared.run(catalog=catalog).raise_for_exit_code().state
        (broken,) = [
            each
            for each in state["bookmarks"]["audit_events"]["partitions"]
            if each["context"]["organization_id"] == an_id(1)
        ]
        broken[part][0][key] = "malformed"
        for service in services:
            service.add([an_event(id="new", at="2024-05-07T09:00:00Z")])
        done = shared.run(catalog=catalog, state=state)
    assert done.exit_code == 1
    (line,) = [line for line in done.errors if line.startswith("AE-STATE: ")]
    assert an_id(1) in line
    new = [each["organization_id"] for each in done.records if each.get("id") == "new"]
    assert sorted(new) == [an_id(0), an_id(2)]
    assert partitions(done)[an_id(1)] == broken


def test_a_bookmark_without_an_organization_is_refused() -> None:
    """It may belong to any of the organizations."""
    with SharedServer([a_service(n, 1) for n in range(2)]).served() as shared:
        state = {"bookmarks": {"audit_events": {"replication_key_value": "2024-05-06T08:00:00Z"}}}
        done = shared.run(state=state)
    assert done.exit_code == 1
    (line,) = done.errors
    assert line.startswith("AE-STATE: ")
    assert "does not say to which of the organizations it belongs" in line


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
    assert "<access_token>" in json.dumps(runs[0].state)
    assert "<access_token>" in runs[0].errors[-1]
    assert runs[5].errors == [
        "AE-SETTINGS: base_url contains the access token: remove it from there"
    ]


def test_tokens_in_files_are_masked_too(tmp_path: Path) -> None:
    """Each token is masked from the moment it is read."""
    services = []
    for number in range(2):
        path = tmp_path / f"{number}"
        path.write_text(f"acme_pat_in-file-{number}\n")
        path.chmod(0o600)
        services.append(a_service(number, 1, access_token=f"acme_pat_in-file-{number}"))
    services[0].add_faults(["status:code=403,msg=acme_pat_in-file-1@*"])
    with SharedServer(services).served() as shared:
        items = [
            {"organization_id": an_id(n), "access_token_file": str(tmp_path / f"{n}")}
            for n in range(2)
        ]
        done = shared.run(organizations=items, access_token=None)
    done.check_discreet(["acme_pat_in-file-0", "acme_pat_in-file-1"])
    assert "<access_token>" in done.errors[-1]


def test_a_list_that_is_not_json_shows_no_token() -> None:
    """For example, a quotation mark is missing in the variable."""
    environment = {
        "TAP_AUDIT_EVENTS_BASE_URL": "https://api.example.com",
        "TAP_AUDIT_EVENTS_ORGANIZATIONS": '[{"access_token": "acme_pat_in-broken-json]',
    }
    done = run(None, "--config=ENV", environment=environment)
    done.check_discreet(["acme_pat_in-broken-json"])
    assert done.errors[0].startswith("AE-SETTINGS: organizations must be a list of objects")


def test_the_connection_to_each_organization_is_tested() -> None:
    """With ``--test``, each line names its organization, and the last one the error."""
    services = [a_service(n, 2) for n in range(3)]
    services[1].add_faults(["status:code=403@*"])
    with SharedServer(services).served() as shared:
        done = shared.run("--test")
    assert done.exit_code == 1
    for number in (0, 2):
        assert f"{an_id(number)}: Audit events of {an_id(number)} can be read" in done.log
    assert f"{an_id(1)}: The service accepts the access token" in done.log
    assert done.errors[-1].startswith(f"AE-403: {an_id(1)}: ")


BAD = [
    ([], "organizations must be a list of objects"),
    ("x", "organizations must be a list of objects"),
    ([1], "organizations[0] must be an object"),
    ([{}], "organizations[0].organization_id is missing"),
    ([{"organization_id": "x"}], "organizations[0].organization_id is not a UUID"),
    ([{"organization_id": an_id(1)}] * 2, "organizations[1].organization_id 00000001"),
    ([{"organization_id": an_id(1), "name": 1}], "organizations[0] has an unknown name 'name': "),
    (
        [{"organization_id": an_id(1), "access_token": "a b"}],
        "organizations[0].access_token must be one word",
    ),
    (
        [{"organization_id": an_id(1), "access_token": "a", "access_token_file": "b"}],
        "organizations[0].access_token and .access_token_file are both set",
    ),
]


@pytest.mark.parametrize(("value", "problem"), BAD)
def test_a_wrong_setting_is_named(value: object, problem: str) -> None:
    """The error has the position in the list."""
    settings = {"base_url": "https://api.example.com", "access_token": SHARED}
    done = run(settings | {"organizations": value})
    assert done.exit_code == 1
    assert done.errors[0].startswith(f"AE-SETTINGS: {problem}")


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
