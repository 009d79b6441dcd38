"""The options both commands of the sandbox share, and the service they describe."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, Final, TypeVar

import click

from tap_audit_events.sandbox.events import MAXIMUM_DAYS, each_event, generate
from tap_audit_events.sandbox.faults import Fault
from tap_audit_events.sandbox.instants import instant_of
from tap_audit_events.sandbox.service import Service

_Command = TypeVar("_Command", bound=Callable[..., Any])

LATE_WITHIN: Final = timedelta(seconds=60)
"""How far before the newest event the late ones lie."""

_DAYS: Final = click.FloatRange(min=0, min_open=True, max=MAXIMUM_DAYS)
_ABOVE_ZERO: Final = click.FloatRange(min=0, min_open=True)
_FROM_ZERO: Final = click.FloatRange(min=0)


def _time(_: click.Context, __: click.Parameter, text: str | None) -> datetime | None:
    try:
        if text is not None:
            instant_of(text)
            return datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return None


def _faults(_: click.Context, __: click.Parameter, specs: tuple[str, ...]) -> list[Fault]:
    try:
        return [Fault.parse(spec) for spec in specs]
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


_OPTIONS: Final = (
    click.option("--events", default=10_000, show_default=True, type=click.IntRange(min=0),
                 help="How many events the organization has."),
    click.option("--days", default=30.0, show_default=True, type=_DAYS,
                 help="Over how many days they are spread."),
    click.option("--seed", default=1, show_default=True,
                 help="The same seed, with the same --until, gives the same events."),
    click.option("--until", callback=_time, metavar="TIME", show_default="now",
                 help="The time just after the newest event, as in 2024-05-31T12:00:00Z."),
    click.option("--page-latency", default=0.0, metavar="SECONDS", type=_FROM_ZERO,
                 help="Answer each request only after that time."),
    click.option("--live", default=0.0, metavar="PER_SECOND", type=_FROM_ZERO,
                 help="Keep adding so many new events a second, beginning at --until."),
    click.option("--late", default=0, metavar="COUNT", type=click.IntRange(min=0),
                 help="Of the events, let COUNT lie in the minute before the newest, and hide them"
                      " until a page with the newest has been served. They count in --events."),
    click.option("--fault", "faults", multiple=True, metavar="SPEC", callback=_faults,
                 help="Let requests fail; see below. May be given more than once."),
    click.option("--rate-limit", metavar="PER_SECOND", type=_ABOVE_ZERO,
                 help="Answer 429 with Retry-After to more requests a second."),
    click.option("--cursor-lifetime", metavar="REQUESTS", type=click.IntRange(min=1),
                 help="Refuse a cursor once so many requests came after the one that got it."),
)  # fmt: skip


def service_options(command: _Command) -> _Command:
    """Give a command the options that `make_service` takes."""
    return reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), command)


def make_service(
    *,
    events: int,
    days: float,
    seed: int,
    until: datetime | None,
    page_latency: float,
    live: float,
    late: int,
    faults: list[Fault],
    rate_limit: float | None,
    cursor_lifetime: int | None,
) -> Service:
    """The service the options describe, with its events in it."""
    if late > events:
        raise click.UsageError(f"--late {late} is more than --events {events}")
    newest_before = until or datetime.now(UTC)
    early = each_event(events - late, days, seed, newest_before)
    service = Service(
        faults=faults,
        rate_limit=rate_limit,
        page_latency_seconds=page_latency,
        cursor_lifetime_requests=cursor_lifetime,
        live_events_per_second=live,
        live_from=until,
        seed=seed,
    )
    service.add(early)
    late_before = newest_before - timedelta(seconds=1)
    late_days = LATE_WITHIN / timedelta(days=1)
    service.add_late(generate(late, late_days, f"late {seed}", late_before))
    return service
