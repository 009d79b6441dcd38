"""The bookmark of each organization in the stream's part of a Singer state."""

from __future__ import annotations

from collections.abc import Collection
from logging import Logger
from typing import Any, Final

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.events.stream_names import ORGANIZATION_KEY, REPLICATION_KEY
from tap_audit_events.extraction.run_state import unusable
from tap_audit_events.run.organization import GivenState
from tap_audit_events.run.tokens import organization_logger
from tap_audit_events.singer.state import from_bookmark, has_time, organization_of

_PARTITIONS: Final = "partitions"
_BOOKMARK: Final = frozenset(
    {"replication_key", "replication_key_value", REPLICATION_KEY, "watermark", "coverage"}
)


class Bookmarks:
    """Finds and keeps the bookmarks of the organizations of a run.

    One organization has its bookmark at the top; several have it in Singer's ``partitions``. A
    bookmark in the other place is found too, and the bookmarks of organizations that are not read
    stay as they are. If an organization has a bookmark in both places, the partition counts:
    a merge of states may keep an old bookmark at the top, after a run for several has moved it.
    `stream_state`, the stream's part of the state, is changed.

    Raises:
        SettingsError: the bookmark at the top has to be moved into a partition, and is malformed,
            or does not say to which of several organizations it belongs.
    """

    def __init__(
        self,
        stream_state: dict[str, Any],
        organization_ids: Collection[str],
        *,
        in_partitions: bool,
    ) -> None:
        self._state = stream_state
        self._in_partitions = in_partitions
        self._partitions: dict[str, dict[str, Any]] = {
            str(each["context"].get(ORGANIZATION_KEY)).lower(): each
            for each in stream_state.get(_PARTITIONS, ())
        }
        if in_partitions:
            self._move_into_partition(organization_ids)

    def states(self, settings: Settings, logger: Logger) -> dict[str, GivenState]:
        """The state in the bookmark of each organization, or why that cannot be used."""
        states: dict[str, GivenState] = {}
        for each in settings.each():
            name, warn = each.organization_id, organization_logger(logger, each).warning
            try:
                states[name] = from_bookmark(self.of(name), name, warn=warn)
            except SettingsError as error:
                states[name] = error
        return states

    def of(self, organization_id: str) -> dict[str, Any]:
        """The bookmark of an organization, empty if it has none."""
        at_top = {} if self._in_partitions else self._state
        return self._partitions.get(organization_id.lower(), at_top)

    def keep(self, organization_id: str, bookmark: dict[str, Any]) -> None:
        """Put a bookmark into the state, for the STATE that is written next."""
        if not bookmark:
            return
        key = organization_id.lower()
        if self._in_partitions and key not in self._partitions:
            partition: dict[str, Any] = {"context": {ORGANIZATION_KEY: organization_id}}
            self._partitions[key] = partition
            self._state.setdefault(_PARTITIONS, []).append(partition)
        self.of(organization_id).update(bookmark)

    def _move_into_partition(self, organization_ids: Collection[str]) -> None:
        """Move the bookmark of a run for one organization from the top into a partition."""
        bookmark = {name: each for name, each in self._state.items() if name in _BOOKMARK}
        owner = organization_of(bookmark)
        if owner is None:
            if not has_time(bookmark):
                return
            if len(organization_ids) > 1:
                raise unusable(
                    "it does not say to which of the organizations it belongs: put it into"
                    ' partitions, next to "context": {"organization_id": "…"}'
                )
            (owner,) = organization_ids
        for name in bookmark:
            del self._state[name]
        if owner.lower() not in self._partitions:
            self.keep(owner, bookmark)
