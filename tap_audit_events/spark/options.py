"""The options of the data source: settings of the tap, and a few of its own."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec

from tap_audit_events.config.environment import settings_of
from tap_audit_events.config.names import ENVIRONMENT_PREFIX
from tap_audit_events.config.schema import SETTINGS
from tap_audit_events.config.settings import Settings, checked_settings, override
from tap_audit_events.errors.exceptions import SettingsError, sanitize
from tap_audit_events.events.instants import Instant, first_instant

EARLIEST_OPTION: Final = "earliest"
LATEST_OPTION: Final = "latest"
_STARTING_FROM: Final = "startingfrom"

_logger: Final = logging.getLogger("tap_audit_events")


class SparkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to read, and how Spark divides it.

    Attributes:
        settings: the settings; `concurrency` is 1 by default, as partitions are read side by side.
        partitions: maximum number of tasks of a read or of a batch of a stream.
        push_filters: whether a read accepts Spark's filters. It then must be used for one query
            only: Spark 4.3 applies the filters of the first one to later ones as well.
        max_events_per_trigger: about how many events a batch of a stream has at most.
        starting_from: where a stream starts: `EARLIEST_OPTION`, `LATEST_OPTION` or an instant.
    """

    settings: Settings
    partitions: int = 8
    push_filters: bool = False
    max_events_per_trigger: int = 1_000_000
    starting_from: Instant | str = EARLIEST_OPTION


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    partitions: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 8
    push_filters: bool = False
    max_events_per_trigger: Annotated[int, msgspec.Meta(ge=1)] = 1_000_000


_EXPECTED: Final = {
    "partitions": "an integer from 1 to 10000",
    "push_filters": "true or false",
    "max_events_per_trigger": "an integer of at least 1",
}
_OWN: Final = (*_EXPECTED, _STARTING_FROM)
_IN_PLANS: Final = (
    "Spark may show options in plans and event logs: put the token into a file on the driver and"
    " on each executor, and set access_token_file to its path"
)


def read_options(options: Mapping[str, str]) -> SparkOptions:
    """Read and check the options, and the environment of this process for settings not given.

    Raises:
        SettingsError: the message names each option to fix.
    """
    given = {name.lower(): text for name, text in options.items()}
    problems: list[str] = []
    own = {name: _own_option(name, given.pop(name), problems) for name in _OWN if name in given}
    problems.extend(_token_problems(given))
    starting_from = own.pop(_STARTING_FROM, EARLIEST_OPTION)
    if problems:
        raise SettingsError(problems)
    texts = {
        f"{ENVIRONMENT_PREFIX}{name.upper()}": given[name] for name in SETTINGS if name in given
    }
    config = override(settings_of(os.environ), settings_of(texts))
    if config.get("quarantine_file"):
        problems = ["quarantine_file cannot be used: a file on an executor is lost with it"]
        raise SettingsError(problems)
    config |= {name: text for name, text in given.items() if name not in SETTINGS}
    known = [*SETTINGS, *_OWN]
    config = {"concurrency": 1, **config}
    settings = checked_settings(config, _logger, known=known, environment="in the environment")
    return SparkOptions(settings=settings, starting_from=starting_from, **own)


def _own_option(name: str, text: str, problems: list[str]) -> Any:
    if name == _STARTING_FROM:
        if text.lower() in (EARLIEST_OPTION, LATEST_OPTION):
            return text.lower()
        try:
            return first_instant(text)
        except ValueError as error:
            problems.append(f"startingFrom {error}, nor earliest or latest: {sanitize(text)}")
            return None
    try:
        return getattr(msgspec.convert({name: text}, _Own, strict=False), name)
    except msgspec.ValidationError:
        problems.append(f"{name} is {sanitize(text)}: set it to {_EXPECTED[name]}")
        return None


def _token_problems(given: Mapping[str, str]) -> Iterator[str]:
    if "access_token" in given:
        yield f"access_token cannot be an option. {_IN_PLANS}"
    try:
        items = json.loads(given.get("organizations", "[]"))
    except ValueError:
        return  # its problem is named with those of the other settings
    if isinstance(items, list) and any(
        isinstance(each, dict) and each.get("access_token") for each in items
    ):
        yield f"organizations cannot have an access_token in an option. {_IN_PLANS}"
