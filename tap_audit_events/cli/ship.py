"""The subcommand `ship`: sends events to a receiver, and remembers what it has acknowledged."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tap_audit_events.api.audit_events import AuditEvents
from tap_audit_events.cli.export import Export
from tap_audit_events.cli.following import Retrying, check_can_follow
from tap_audit_events.cli.options import Common
from tap_audit_events.cli.refused_events import RefusedEvents
from tap_audit_events.cli.selection import Selection
from tap_audit_events.cli.terminal.reporter import Reporter
from tap_audit_events.config.process import tune_memory
from tap_audit_events.config.settings import Settings
from tap_audit_events.events.event_filter import EventFilter
from tap_audit_events.events.instants import instant_of
from tap_audit_events.extraction.shutdown import Stop
from tap_audit_events.outputs.durable import check_files_differ
from tap_audit_events.outputs.form import Form
from tap_audit_events.outputs.receivers.endpoint import Secret
from tap_audit_events.outputs.receivers.kinds import SendOptions, open_receiver
from tap_audit_events.run.runtime import Runtime
from tap_audit_events.service.transport import Connections


@dataclass(frozen=True)
class ShipOptions:
    """The options of `ship`.

    Attributes:
        to: the kind and the URL of the receiver.
        state: the state file.
        follow: whether new events are sent as they appear.
        interval: seconds between two checks for them.
        secret_file: the file with the receiver's secret.
        secret_header: the header that carries it.
        batch_events: the most events in a batch.
        gzip: whether bodies are compressed.
        content_type: the Content-Type of JSON Lines, if not the usual one.
        filters: which events are sent.
        form: the form of the events.
    """

    to: str
    state: Path
    follow: bool
    interval: float
    secret_file: str | None
    secret_header: str | None
    batch_events: int
    gzip: bool
    content_type: str | None
    filters: EventFilter
    form: Form

    @property
    def interval_seconds(self) -> float | None:
        """Seconds between two checks for new events; None without `follow`."""
        return self.interval if self.follow else None


def run_ship(options: ShipOptions, common: Common) -> None:
    """Send the events that the receiver has not acknowledged yet; with an interval, also new ones.

    Raises:
        AuditEventsError: not all events were sent; the next run continues after the last state.
    """
    settings, interval = common.settings(), options.interval_seconds
    if interval is not None:
        check_can_follow(settings)
    tune_memory()
    secret = Secret.given(options.secret_file, options.secret_header)
    end = settings.end_date or instant_of(datetime.now(UTC))
    runtime = common.runtime()
    refused = _refused_events(settings, options, runtime, common)
    sending = SendOptions(
        texts=options.form.texts,
        batch_events=options.batch_events,
        compresses=options.gzip,
        line_type=options.content_type,
        max_retries=settings.max_retries if interval is None else None,
        timeout_seconds=settings.request_timeout_seconds,
        user_agent=settings.user_agent,
        keep_refused=refused.keep if refused else None,
    )
    with (
        Connections() as connections,  # all runs use the same
        open_receiver(options.to, options.state, secret, sending, common.stop) as opened,
        closing(Reporter(end, quiet=common.quiet)) as shown,
    ):
        runtime = replace(runtime, connections=connections)
        events = AuditEvents.of_settings(settings, lambda: runtime)
        selection = Selection(options.filters or None, options.form.name)
        export = Export(lambda state: events.pages(state=state), opened, shown, selection)
        try:
            _run(export, Retrying(common.stop, common.logger, interval), common.stop, interval)
        finally:
            shown.close()
        shown.events -= refused.count if refused else 0
        shown.done(f"Shipped to {opened.name}", refused.note if refused else "")


def _refused_events(
    settings: Settings, options: ShipOptions, runtime: Runtime, common: Common
) -> RefusedEvents | None:
    """What keeps events that the receiver refuses; None if such an event ends the run."""
    if settings.quarantine_file is None:
        return None
    path = Path(settings.quarantine_file)
    check_files_differ({"--state": options.state, "--quarantine": path})
    return RefusedEvents(runtime.new_quarantine(path, now=runtime.now), common.logger)


def _run(export: Export, retrying: Retrying, stop: Stop, interval: float | None) -> None:
    retrying.call(export.run)
    while interval is not None:
        stop.wait(interval)
        retrying.call(export.run)
