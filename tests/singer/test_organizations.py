"""Several organizations in one run: each has its own bookmark and its own errors."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.errors.exceptions import OrganizationsError, service_error
from tap_audit_events.events.exact_json import JsonText
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.running import Run
from tests.shared_server import SharedServer, a_service, an_id
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


def test_a_new_token_serves_all_organizations(tmp_path: Path) -> None:
    """Only requests that were in flight are refused, and the log has one line for each token."""
    token_file, new_file, responses = tmp_path / "token", tmp_path / "new", itertools.count(1)
    services = [a_service(n, 40) for n in range(30)]

    def rotating(respond: Callable[..., Any]) -> Callable[..., Any]:
        def respond_after(*request: Any, **more: Any) -> Any:
            if (number := next(responses)) in {20, 60}:
                new_file.write_text(f"acme_pat_rotated-{number}")
                new_file.replace(token_file)
                for each in services:
                    each.access_token = token_file.read_text()
            return respond(*request, **more)

        return respond_after

    token_file.write_text(services[0].access_token)
    for each in services:
        each.respond = rotating(each.respond)  # type: ignore[method-assign]
    with SharedServer(services).served() as shared:
        done = shared.run(
            access_token=None,
            access_token_file=str(token_file),
            page_size=10,
            concurrency=8,
        ).raise_for_exit_code()
        refused = [request for request in shared.several.requests if request.status == 401]
    assert len(set(keys(done))) == len(done.records) == 30 * 40
    assert 2 <= len(refused) <= 2 * 8
    assert done.log.count("access_token_file holds a new token") == 2


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
        ("status:code=403@*", "AE-403"),
        ("same-cursor@*", "AE-CURSOR-REPEATED"),
        ("body:text=%7B%22auditEvents%22%3A7%7D@*", "AE-ENVELOPE"),
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
