"""Warnings at the start of a run, of events that it leaves out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from logging import Logger
from typing import Any

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import sanitize
from tap_audit_events.events.instants import EARLIEST, Instant, brief, instant_of, later
from tap_audit_events.extraction.watermark import Watermark

_WITHOUT_STATE = (
    "To get them, run once without state into a target that updates by id, or export into a new"
    " output."
)


def warn_of_gaps(
    watermark: Watermark,
    state: Mapping[str, Any],
    settings: Settings,
    *,
    now: datetime,
    logger: Logger,
) -> None:
    """Warn of events that a run leaves out if it continues from this watermark and this state."""
    if (added := types_never_requested(state, settings.action_types)) is not None:
        logger.warning(
            "action_types was widened since the bookmark was written: older events of %s were never"
            " requested. %s",
            ", ".join(map(sanitize, added)) or "the other types",
            _WITHOUT_STATE,
        )
    if excluded := types_no_longer_excluded(state, settings):
        logger.warning(
            "exclude_action_types was narrowed since the bookmark was written: older events of %s"
            " were left out. %s",
            ", ".join(map(sanitize, excluded)),
            _WITHOUT_STATE,
        )
    for warning in start_warnings(watermark, settings, instant_of(now)):
        logger.warning("%s", warning)


def types_never_requested(
    state: Mapping[str, Any], action_types: Collection[str]
) -> list[str] | None:
    """The action types of this run that the runs before a state did not request.

    None if they requested each of these types. An empty ``action_types`` stands for all types; an
    empty result stands for all types but those that the earlier runs requested.
    """
    earlier = state.get("action_types")
    if not earlier or (action_types and set(action_types) <= set(earlier)):
        return None
    return [name for name in action_types if name not in earlier]


def types_no_longer_excluded(state: Mapping[str, Any], settings: Settings) -> list[str]:
    """The action types that this run delivers, although the run before the state left them out."""
    return [
        name
        for name in state.get("exclude_action_types", ())
        if name not in settings.exclude_action_types and name in (settings.action_types or [name])
    ]


def start_warnings(watermark: Watermark, settings: Settings, now: Instant) -> Iterator[str]:
    """Warnings of events that the bookmark and the settings of this run leave out."""
    bookmark, start_date = watermark.bookmark, settings.start_date
    if bookmark is None:
        return
    if bookmark > now:
        yield (
            f"The bookmark {brief(bookmark)} lies in the future: nothing is read until then. Check"
            " this machine's clock. To read again before then, run without state, or, in a Singer"
            " state, set replication_key_value to an earlier time"
        )
    yield from _never_read(watermark.covered_from, start_date)
    if start_date is not None and start_date > bookmark > EARLIEST:
        yield (
            f"start_date lies after the bookmark: events between {brief(bookmark)} and"
            f" {brief(start_date)} are not read, now or later. {_WITHOUT_STATE}"
        )
    elif start_date is not None and _cuts_lookback(watermark, start_date):
        yield (
            f"start_date lies within the lookback: late events before {brief(start_date)} are not"
            " read. To read them, run with the earlier start_date before the bookmark moves on"
        )
    elif _is_new_reach(watermark, start_date):
        yield (
            f"Late events are read only from {brief(watermark.ids_from)} on: the state has no ids"
            " of older events, which would be delivered again. Once the bookmark has moved on, the"
            " whole of lookback_seconds is read"
        )


def _never_read(covered_from: Instant | None, start_date: Instant | None) -> Iterator[str]:
    """A warning if `start_date` was later in an earlier run, so that events were left out."""
    if covered_from is not None and covered_from > (start_date or EARLIEST):
        since = brief(covered_from)
        which = f"between {brief(start_date)} and {since}" if start_date else f"before {since}"
        yield (
            f"Events {which} were not all read: start_date was {since} in an earlier run."
            f" {_WITHOUT_STATE} To do without them, set start_date to {since} again"
        )


def _cuts_lookback(watermark: Watermark, start_date: Instant) -> bool:
    """Whether earlier runs had an earlier start date, and would look back further than this one."""
    covered_from = watermark.covered_from
    if covered_from is None:
        return False
    shortest = later(max(watermark.lookback_start, watermark.ids_from), seconds=1)
    return start_date > max(shortest, covered_from)


def _is_new_reach(watermark: Watermark, start_date: Instant | None) -> bool:
    """Whether the ids, and not the start date, shorten the lookback by more than a second."""
    shortest = later(watermark.lookback_start, seconds=1)
    return watermark.ids_from > max(shortest, start_date or shortest)
