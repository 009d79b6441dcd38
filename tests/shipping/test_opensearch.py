"""`audit-events ship` creates each event once in an index, and says what the index refuses."""

import base64
import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.api.columns import COLUMNS
from tap_audit_events.api.event_page import EventPage
from tap_audit_events.events.instants import Instant
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.outputs.receivers.delivery import RefusedEvent
from tap_audit_events.outputs.receivers.endpoint import Secret
from tap_audit_events.outputs.receivers.kinds import SendOptions, open_receiver
from tap_audit_events.outputs.receivers.opensearch import OpenSearch, document_id
from tap_audit_events.sandbox import Service
from tests.builders import ORGANIZATION_ID, an_event
from tests.cli.command import Command, Done
from tests.cli.exported import HOSTILE
from tests.cli.failing import refused
from tests.cli.tailing import of_several
from tests.forking import PROJECT
from tests.outputs.opened import page_of
from tests.shared_server import SharedServer, a_service, an_id
from tests.shipping.bulk import Bulk, Document, Result
from tests.shipping.receiver import Closes, Receiver, Slow, Status
from tests.shipping.ship import EVENTS, IDS, NO_RETRIES, arguments

Ship = Callable[..., Done]
FEW = {"TAP_AUDIT_EVENTS_MAX_RETRIES": "3"}
SMALL = ("--batch-events", "10")

MALFORMED: Result = {
    "status": 400,
    "error": {"type": "mapper_parsing_exception", "reason": "failed to parse field [action]"},
}
BUSY: Result = {
    "status": 429,
    "error": {"type": "es_rejected_execution_exception", "reason": "queue capacity = 200"},
}


@pytest.fixture
def bulk() -> Bulk:
    return Bulk()


@pytest.fixture
def receiver(settings: dict[str, Any], bulk: Bulk) -> Iterator[Receiver]:
    """A receiver that fails the test if it is sent the service's access token."""
    with Receiver(bulk) as receiver:
        receiver.secrets = (settings["access_token"],)
        yield receiver


@pytest.fixture
def ship(command: Command, receiver: Receiver) -> Ship:
    """Runs the command with the index."""
    return shipping(replace(command, environment=FEW), receiver)


def shipping(command: Command, receiver: Receiver) -> Ship:
    def ship(*more: str, to: str = "", **environment: str) -> Done:
        return command(*arguments(to or index_of(receiver), *more), **environment)

    return ship


def index_of(receiver: Receiver) -> str:
    return f"opensearch:{receiver.root}/audit"


def with_time(event: Document) -> Document:
    return {"@timestamp": event["occurredAt"], **event}


def test_events_are_created_once_although_batches_are_repeated(
    service: Service, ship: Ship, receiver: Receiver, bulk: Bulk
) -> None:
    """A batch whose response is lost is sent again; the documents are the events as sent."""
    service.add(EVENTS)
    receiver.faults += [Closes(after_taking=True), Status(503), Closes()]

    ship(*SMALL).raise_for_exit_code()

    assert [*bulk.documents.values()] == [with_time(event) for event in EVENTS]
    assert len(receiver.events) > len(EVENTS)
    sent = receiver.requests[-1]
    assert (sent.path.partition("?")[0], sent.headers["content-encoding"]) == (
        "/audit/_bulk",
        "gzip",
    )


def test_a_run_that_is_killed_leaves_no_second_document(
    service: Service, command: Command, ship: Ship, receiver: Receiver, bulk: Bulk
) -> None:
    service.add(EVENTS)
    receiver.faults += [Slow(0), Slow(0), Slow(60)]
    with command.started(*arguments(index_of(receiver), *SMALL)) as run:
        bulk.wait_for(30)
        run.send_signal(signal.SIGKILL)
        run.wait(60)

    ship(*SMALL).raise_for_exit_code()

    assert bulk.ids == IDS


def test_what_is_not_taken_for_now_is_sent_again_alone(
    service: Service, ship: Ship, receiver: Receiver, bulk: Bulk
) -> None:
    """Half of the events get 429, once; the others are not sent again."""
    service.add(EVENTS)
    waiting = set(IDS[::2])

    def busy(document: Document) -> Result | None:
        if document["id"] not in waiting:
            return None
        waiting.remove(document["id"])
        return BUSY

    bulk.result_of = busy

    done = ship().raise_for_exit_code()

    assert sorted(bulk.ids) == IDS
    assert receiver.ids == [*IDS, *IDS[::2]]
    assert "has not taken 20 of 40 events: status 429, 'es_rejected_execution_ex" in done.log


def test_an_event_that_stays_busy_ends_the_run(
    service: Service, ship: Ship, receiver: Receiver, bulk: Bulk
) -> None:
    """What has been accepted meanwhile does not prolong the retries of one event without end."""
    service.add(EVENTS)
    bulk.result_of = lambda document: BUSY if document["id"] == IDS[7] else None

    done = ship(TAP_AUDIT_EVENTS_MAX_RETRIES="1")

    assert "'es_rejected_execution_exception': 'queue capacity = 200'" in refused(
        done, "AE-RECEIVER"
    )
    bulk.result_of = lambda _: None
    ship().raise_for_exit_code()
    assert sorted(bulk.ids) == IDS


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (MALFORMED, "status 400, 'mapper_parsing_exception': 'failed to parse field [action]'"),
        ({"status": 400}, "status 400"),
        ({"status": 201, "_id": "x", "failure_store": "used"}, "in the failure store"),
    ],
    ids=["mapping", "no reason", "failure store"],
)
def test_an_event_that_the_index_refuses_ends_the_run(
    service: Service,
    ship: Ship,
    bulk: Bulk,
    result: Result,
    reason: str,
) -> None:
    """The error names the event and the reason; nothing is lost."""
    service.add(EVENTS)
    bulk.result_of = lambda document: result if document["id"] == IDS[25] else None

    error = refused(ship(*SMALL), "AE-RECEIVER-EVENT")

    assert reason in error
    assert f'"id":"{IDS[25]}"' in error
    bulk.result_of = lambda _: None
    ship(*SMALL).raise_for_exit_code()
    assert sorted(bulk.ids) == IDS


def test_events_that_are_refused_can_be_kept_while_the_rest_arrives(
    receiver: Receiver, bulk: Bulk, tmp_path: Path
) -> None:
    """An event that is busy in the same batch does not make others be refused twice."""
    results = {IDS[3]: BUSY, IDS[7]: MALFORMED, IDS[30]: MALFORMED}
    bulk.result_of = lambda document: results.pop(document["id"], None)
    kept: list[RefusedEvent] = []
    options = SendOptions(
        texts=lambda page: page.raw,
        batch_events=100,
        compresses=True,
        line_type=None,
        max_retries=3,
        timeout_seconds=60,
        user_agent="tests",
        keep_refused=kept.extend,
    )

    with open_receiver(
        index_of(receiver), tmp_path / "s.json", Secret(), options, Stop()
    ) as opened:
        opened.output.begin()
        opened.output.write(page_of(EVENTS))
        opened.output.commit({})

    assert [json.loads(each.item.text)["id"] for each in kept] == [IDS[7], IDS[30]]
    assert all("mapper_parsing_exception" in each.reason for each in kept)
    assert sorted([*bulk.ids, IDS[7], IDS[30]]) == IDS
    assert receiver.ids == [*IDS, IDS[3]]


def failed(status: int, type_: str) -> Result:
    return {"status": status, "error": {"type": type_, "reason": "blocked"}}


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (failed(404, "index_not_found_exception"), "AE-RECEIVER-REFUSED"),
        (failed(400, "index_closed_exception"), "AE-RECEIVER-REFUSED"),
        (failed(403, "security_exception"), "AE-RECEIVER-REFUSED"),
        (failed(403, "cluster_block_exception"), "AE-RECEIVER"),
        (failed(503, "unavailable_shards_exception"), "AE-RECEIVER"),
    ],
)
def test_an_error_of_the_index_is_not_one_of_the_event(
    service: Service, ship: Ship, bulk: Bulk, result: Result, code: str
) -> None:
    """A full disk or a busy shard passes; a missing index or a right does not."""
    service.add(EVENTS)
    bulk.result_of = lambda _: result

    assert f"status {result['status']}, '{result['error']['type']}'" in refused(
        ship(**NO_RETRIES), code
    )


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (failed(403, "cluster_block_exception"), "AE-RECEIVER"),
        (failed(429, "es_rejected_execution_exception"), "AE-RECEIVER"),
        (failed(403, "security_exception"), "AE-RECEIVER-REFUSED"),
        (failed(404, "index_not_found_exception"), "AE-RECEIVER-REFUSED"),
    ],
)
def test_an_error_of_the_whole_request_is_named(
    service: Service, ship: Ship, receiver: Receiver, result: Result, code: str
) -> None:
    service.add(EVENTS)
    receiver.faults.append(Status(result["status"], body=json.dumps(result).encode()))

    error = refused(ship(**NO_RETRIES), code)

    assert f"status {result['status']}" in error
    assert result["error"]["type"] in error


def test_a_batch_that_is_too_large_is_split(
    service: Service, ship: Ship, receiver: Receiver, bulk: Bulk
) -> None:
    service.add(EVENTS)
    receiver.max_bytes = 5_000

    ship().raise_for_exit_code()

    assert bulk.ids == IDS


def of_none(_: dict[str, Any]) -> Any:
    return {"errors": False, "items": []}


def with_one_less(response: dict[str, Any]) -> Any:
    return {**response, "items": response["items"][1:]}


def in_another_order(response: dict[str, Any]) -> Any:
    return {**response, "items": response["items"][::-1]}


def without_the_error(response: dict[str, Any]) -> Any:
    return {**response, "items": [{"create": {"status": 201}} for _ in response["items"]]}


def with_fewer_created(response: dict[str, Any]) -> Any:
    items = [{"create": {"status": 201}} for _ in response["items"][1:]]
    return {**response, "errors": False, "items": items}


@pytest.mark.parametrize(
    "changed",
    [
        of_none,
        with_one_less,
        with_fewer_created,
        in_another_order,
        without_the_error,
        lambda _: {"took": 1},
    ],
    ids=[
        "no items",
        "fewer items",
        "fewer created",
        "another order",
        "errors without one",
        "another response",
    ],
)
def test_a_response_that_is_not_of_these_events_loses_none(
    service: Service,
    ship: Ship,
    bulk: Bulk,
    changed: Callable[[dict[str, Any]], Any],
) -> None:
    """Whose error it is cannot be known, so nothing counts as accepted."""
    service.add(EVENTS)
    bulk.result_of = lambda document: MALFORMED if document["id"] == IDS[7] else None
    bulk.changed = changed

    assert "is not that of _bulk" in refused(ship(**NO_RETRIES), "AE-RECEIVER")

    bulk.result_of, bulk.changed = Bulk().result_of, Bulk().changed
    ship().raise_for_exit_code()
    assert sorted(bulk.ids) == IDS


def test_the_page_of_a_proxy_is_no_acknowledgement(
    service: Service, ship: Ship, receiver: Receiver, bulk: Bulk
) -> None:
    service.add(EVENTS)
    receiver.faults.append(Status(200, body=b"<html><title>Sign in</title></html>"))

    assert "Sign in" in refused(ship(**NO_RETRIES), "AE-RECEIVER")

    ship().raise_for_exit_code()
    assert bulk.ids == IDS


def test_one_result_for_all_accepted_events_suffices(
    service: Service, ship: Ship, receiver: Receiver, bulk: Bulk
) -> None:
    """Tenzir, which emulates the operation, responds so."""
    service.add(EVENTS)
    bulk.changed = lambda _: {"errors": False, "items": [{"create": {"status": 201}}]}

    ship().raise_for_exit_code()

    assert bulk.ids == IDS


LONG = [an_event(id=each, at="2025-01-01T00:00:00Z") for each in ("😀" * 250, 'a"\\\n', "a b", "~")]
TIMED = [
    an_event(id="own", at="2025-01-01T00:00:01Z", **{"@timestamp": "2020-02-02T00:00:00Z"}),
    an_event(id="digits", at=f"2025-01-01T00:00:02.{'123456789' * 3}Z"),
    an_event(
        id="other", at="2025-01-01T00:00:03Z", action={"type": "t", "details": {"@timestamp": 5}}
    ),
]


def test_hostile_events_are_documents_as_they_came(
    service: Service, ship: Ship, receiver: Receiver, bulk: Bulk
) -> None:
    """Any id has a document of its own; the event's own `@timestamp` is kept."""
    service.add([*HOSTILE, *LONG, *TIMED])

    ship().raise_for_exit_code()

    documents = {document["id"]: document for document in bulk.documents.values()}
    assert documents.keys() == {event["id"] for event in [*HOSTILE, *LONG, *TIMED]}
    for event in [*HOSTILE, *LONG, *TIMED]:
        assert documents[event["id"]] == with_time(event) | {
            "@timestamp": event.get("@timestamp", f"{event['occurredAt'][:29].rstrip('Z')}Z")
        }


def test_a_name_with_escapes_is_recognized() -> None:
    """A field that is there twice would make the index refuse the event."""
    text = rb'{"id":"1","\u0040timestamp":"2020-02-02T00:00:00Z"}'

    assert b"2024" not in the_body(text, text)


def test_the_id_is_that_of_the_event_in_any_form() -> None:
    """With `--as ocsf` the document has another form."""
    body = the_body(b'{"id":"event-1"}', b'{"class_uid":6003}')

    action, document, _ = body.split(b"\n")
    assert json.loads(action) == {"create": {"_id": f"{ORGANIZATION_ID}:event-1"}}
    assert json.loads(document) == {"@timestamp": "2024-05-06T07:08:09Z", "class_uid": 6003}


def the_body(raw: bytes, text: bytes) -> bytes:
    page = EventPage(
        [raw],
        [Instant("2024-05-06T07:08:09")],
        organization_id=ORGANIZATION_ID,
        shape=RecordShape(),
        state=dict,
    )
    (body,) = OpenSearch.bodies(object.__new__(OpenSearch), page, [text])
    return body


def test_ids_are_different_and_short() -> None:
    """No id can be written so that it has the document of another one."""
    digest = document_id(ORGANIZATION_ID, "é").rpartition("~")[2]
    ids = ["é", digest, f"~{digest}", "e", "E", "x" * 128, "x" * 129, "x" * 1000, "", " "]

    documents = {document_id(ORGANIZATION_ID, each) for each in ids}

    assert len(documents) == len(ids)
    assert max(map(len, documents)) <= 165
    assert document_id(ORGANIZATION_ID.upper(), "e") in documents


def test_the_same_id_in_two_organizations_is_two_documents(tmp_path: Path) -> None:
    services = [a_service(number, 0) for number in range(2)]
    for each in services:
        each.add([an_event(id="same")])
    with SharedServer(services).served() as served, Receiver(Bulk()) as receiver:
        shipping(of_several(2, tmp_path, served), receiver)().raise_for_exit_code()
        bulk = receiver.protocol

    assert isinstance(bulk, Bulk)
    assert sorted(bulk.documents) == [f"{an_id(number)}:same" for number in range(2)]


BASIC = f"Basic {base64.b64encode(b'admin:pass-phrase').decode()}"


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        ("opensearch", {"admin:pass-phrase": BASIC}),
        ("opensearch", {"a-json-web-token": "Bearer a-json-web-token"}),
        ("elasticsearch", {"an-encoded-key==": "ApiKey an-encoded-key=="}),
        ("elasticsearch", {"Bearer of-a-service": "Bearer of-a-service"}),
    ],
)
def test_the_secret_is_sent_as_users_of_both_expect(
    service: Service, ship: Ship, receiver: Receiver, kind: str, secret: dict[str, str]
) -> None:
    service.add(EVENTS[:1])
    ((given, sent),) = secret.items()
    receiver.authorization = sent

    done = ship(to=f"{kind}:{receiver.root}/audit", AUDIT_EVENTS_RECEIVER_SECRET=given)

    done.raise_for_exit_code()
    assert receiver.ids == IDS[:1]


def test_the_query_of_the_url_is_kept(service: Service, ship: Ship, receiver: Receiver) -> None:
    service.add(EVENTS[:1])

    ship(to=f"opensearch:{receiver.root}/audit?pipeline=geo").raise_for_exit_code()

    assert receiver.requests[0].path.startswith("/audit/_bulk?pipeline=geo&filter_path=")


@pytest.mark.parametrize("path", ["", "/", "/audit/_bulk"])
def test_a_url_without_an_index_is_refused(ship: Ship, receiver: Receiver, path: str) -> None:
    done = ship(to=f"opensearch:{receiver.root}{path}")

    assert "must end with an index" in done.error
    assert receiver.requests == []


def test_the_index_of_the_documents_has_every_field() -> None:
    mappings = json.loads((PROJECT / "examples/opensearch-index.json").read_text())["mappings"]
    paths = {path for path in COLUMNS.values() if path} | {("@timestamp",)}

    assert {*_leaves(mappings["properties"])} == paths


def _leaves(fields: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, field in fields.items():
        inner = field.get("properties")
        yield from ((name, *path) for path in _leaves(inner)) if inner else [(name,)]
