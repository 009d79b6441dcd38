"""The options that both commands of the sandbox share, and the service they describe."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any, Final, TypeVar
from uuid import UUID

import click

from tap_audit_events.sandbox.data.events import MAXIMUM_DAYS, ORGANIZATION_ID, generate
from tap_audit_events.sandbox.data.instants import instant_of
from tap_audit_events.sandbox.faults import Fault
from tap_audit_events.sandbox.service import RateLimit, Service
from tap_audit_events.sandbox.several import SeveralServices

_Command = TypeVar("_Command", bound=Callable[..., Any])

LATE_WITHIN: Final = timedelta(seconds=60)
"""How far before the newest event the late ones lie."""

_DAYS: Final = click.FloatRange(min=0, min_open=True, max=MAXIMUM_DAYS)
_ABOVE_ZERO: Final = click.FloatRange(min=0, min_open=True, max=1_000_000)
_FROM_ZERO: Final = click.FloatRange(min=0, max=1_000_000)
_LIVE: Final = click.FloatRange(min=0, max=1_000)
"""From about 20,000 a second on, a request would wait for new events without end."""


def _time(_: click.Context, __: click.Parameter, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        instant_of(text)
        time = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if not 1000 <= time.year < 9999:  # Else some events have a year that no date can have.
        raise click.BadParameter("the year is not from 1000 to 9998")
    return time


def _faults(_: click.Context, __: click.Parameter, specs: tuple[str, ...]) -> list[Fault]:
    try:
        return [Fault.parse(spec) for spec in specs]
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


_OPTIONS: Final = (
    click.option("--events", default=10_000, show_default=True, type=click.IntRange(min=0),
                 help="Number of events of each organization."),
    click.option("--organizations", metavar="COUNT", type=click.IntRange(min=1),
                 help="Serve several organizations, each with its own events. Faults apply only to"
                      " the first one."),
    click.option("--days", default=30.0, show_default=True, type=_DAYS,
                 help="Number of days over which the events are spread."),
    click.option("--seed", default=1, show_default=True,
                 help="The same seed, with the same --until, gives the same events."),
    click.option("--until", callback=_time, metavar="TIME", show_default="now",
                 help="The newest event lies just before TIME, such as 2024-05-31T12:00:00Z."),
    click.option("--live", "live_events_per_second", default=0.0, metavar="PER_SECOND", type=_LIVE,
                 help="Keep adding this many events per second, starting at --until."),
    click.option("--late", default=0, metavar="COUNT", type=click.IntRange(min=0),
                 help="Hide COUNT events of the minute before the newest event, until a page with"
                      " the newest event has been served. Fewer than --events."),
    click.option("--page-latency", "page_latency_seconds", default=0.0, metavar="SECONDS",
                 type=_FROM_ZERO, help="Let each response take at least this time."),
    click.option("--rate-limit", metavar="PER_SECOND", type=_ABOVE_ZERO,
                 help="Respond with 429 and Retry-After to more requests per second."),
    click.option("--fault", "faults", multiple=True, metavar="FAULT", callback=_faults,
                 help="Make requests fail, as described below. May be given more than once."),
)  # fmt: skip


def service_options(command: _Command) -> _Command:
    """Give a command the options that `create_service` takes; most are those of `Service`."""
    return reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), command)


def create_service(*, organizations: int | None, **options: Any) -> Service | SeveralServices:
    """The service that the options describe, with its events.

    Several organizations have one service each; they share the rate limit, as they have one token.
    """
    if organizations is None:
        return _create_one(ORGANIZATION_ID, **options)
    seed, limit = options.pop("seed"), options.pop("rate_limit")
    shared = None if limit is None else RateLimit(limit)
    services = []
    for number in range(organizations):
        services.append(
            _create_one(_organization_id(number), seed=seed + number, rate_limit=shared, **options)
        )
        options["faults"] = []
    return SeveralServices(services)


def environment_of(service: Service | SeveralServices, base_url: str) -> dict[str, str]:
    """The settings with which a client reads the service, as environment variables."""
    variables = {"BASE_URL": base_url}
    if isinstance(service, SeveralServices):
        items = [{"organization_id": each.organization_id} for each in service.services.values()]
        variables["ORGANIZATIONS"] = json.dumps(items, separators=(",", ":"))
    else:
        variables["ORGANIZATION_ID"] = service.organization_id
    variables["ACCESS_TOKEN"] = service.access_token
    return {f"TAP_AUDIT_EVENTS_{name}": value for name, value in variables.items()}


def _organization_id(number: int) -> str:
    """The id of an organization; ids count up from that of a sandbox with one organization."""
    return str(UUID(int=UUID(ORGANIZATION_ID).int + number))


def _create_one(
    organization_id: str,
    *,
    events: int,
    days: float,
    seed: int,
    until: datetime | None,
    late: int,
    **options: Any,
) -> Service:
    if late and late >= events:
        raise click.UsageError(f"--late {late} is not less than --events {events}")
    # The tap leaves the second that has not ended yet to the next run.
    newest_before = until or datetime.now(UTC).replace(microsecond=0)
    service = Service(organization_id=organization_id, live_from=until, seed=seed, **options)
    service.add_generated(events - late, days, seed, newest_before)
    late_before = newest_before - timedelta(seconds=1)
    late_days = LATE_WITHIN / timedelta(days=1)
    late_events = generate(late, late_days, f"late {seed}", late_before, organization_id)
    service.add_late(late_events)
    return service
