"""Opens the receiver that `--to` names: one row for each kind, chosen by how the text begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.outputs.durable import check_is_file, resolved, unusable
from tap_audit_events.outputs.formats import Opened
from tap_audit_events.outputs.lock import locked
from tap_audit_events.outputs.receivers.connection import Connection
from tap_audit_events.outputs.receivers.delivery import Delivery, KeepRefused
from tap_audit_events.outputs.receivers.endpoint import Secret, checked_endpoint
from tap_audit_events.outputs.receivers.http_lines import HttpLines
from tap_audit_events.outputs.receivers.opensearch import Elasticsearch, OpenSearch
from tap_audit_events.outputs.receivers.otlp import Otlp
from tap_audit_events.outputs.receivers.receiver import Receiver, Texts
from tap_audit_events.outputs.receivers.receiver_output import ReceiverOutput
from tap_audit_events.outputs.receivers.receiver_state import ReceiverState
from tap_audit_events.outputs.receivers.splunk import Splunk

_LINE_TYPE: Final = "application/x-ndjson"
_UNFINISHED: Final = "The next run continues after the last events that were acknowledged."


class Kind(NamedTuple):
    """A kind of receiver: what it is, and its class."""

    meaning: str
    new: type[Receiver]


KINDS: Final = {
    "https://": Kind("JSON Lines by HTTP", HttpLines),
    "http://": Kind("the same, without a secret or on this machine", HttpLines),
    "splunk-hec:": Kind("Splunk's HTTP Event Collector", Splunk),
    "opensearch:": Kind("an index or data stream of OpenSearch", OpenSearch),
    "elasticsearch:": Kind("an index or data stream of Elasticsearch", Elasticsearch),
    "otlp:": Kind("logs of OpenTelemetry's protocol by HTTP", Otlp),
}
"""The kinds of receivers, by the start of the text that selects each, in lower case."""


@dataclass(frozen=True)
class SendOptions:
    """How events are sent.

    Attributes:
        texts: the JSON texts of a page's events.
        batch_events: the most events in a batch.
        compresses: whether bodies are compressed with gzip.
        line_type: the Content-Type of JSON Lines; None for the usual one.
        max_retries: how often in a row a batch is sent again; None if without end.
        timeout_seconds: for a connection, and for each further part of a response.
        user_agent: the value of the User-Agent header.
        keep_refused: keeps an event that the receiver refuses for good; None to end the run.
    """

    texts: Texts
    batch_events: int
    compresses: bool
    line_type: str | None
    max_retries: int | None
    timeout_seconds: float
    user_agent: str
    keep_refused: KeepRefused | None = None


@contextmanager
def open_receiver(
    to: str, state_path: Path, secret: Secret, options: SendOptions, stop: Stop
) -> Iterator[Opened]:
    """The receiver that `--to` names. Within the ``with`` block, no other run uses its state file.

    Args:
        to: the kind and the URL.
        state_path: the state file.
        secret: the receiver's secret.
        options: how events are sent.
        stop: ends waiting at a signal.

    Raises:
        SettingsError: the receiver or the state file cannot be used, or another run uses the file.
        OutputError: the system refuses the state file.
    """
    prefix = next((each for each in KINDS if to.lower().startswith(each)), None)
    if prefix is None:  # not shown: a password may be in it
        known = ", ".join(KINDS)
        raise unusable(
            f"--to must begin with one of {known}; for a file or table, use audit-events export"
        )
    kind = KINDS[prefix].new
    if options.line_type is not None and kind is not HttpLines:
        raise unusable(
            f"--content-type is for JSON Lines: leave it out for {KINDS[prefix].meaning}"
        )
    is_url = prefix.endswith("//")
    shown, url = ("", to) if is_url else (prefix, to[len(prefix) :])
    endpoint = checked_endpoint(shown, url, secret)
    check_is_file(state_path)
    path = resolved(state_path)
    with (
        locked(path),
        closing(
            Connection(
                endpoint,
                kind.SCHEME,
                stop=stop,
                user_agent=options.user_agent,
                timeout_seconds=options.timeout_seconds,
                compresses=options.compresses,
                line_type=options.line_type or _LINE_TYPE,
            )
        ) as connection,
    ):
        receiver = kind(connection)
        delivery = Delivery(
            receiver,
            endpoint.name,
            max_retries=options.max_retries,
            stop=stop,
            keep_refused=options.keep_refused,
        )
        output = ReceiverOutput(
            receiver,
            delivery,
            ReceiverState(path, endpoint.name),
            texts=options.texts,
            batch_events=options.batch_events,
        )
        yield Opened(output, endpoint.name, extends=True, unfinished=_UNFINISHED)
