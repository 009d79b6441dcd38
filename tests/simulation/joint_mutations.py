"""Mistakes that a tap could make with several organizations: each breaks one promise."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from tap_audit_events.config.settings import Settings
from tap_audit_events.errors.exceptions import service_error
from tap_audit_events.events.instants import instant_of
from tap_audit_events.extraction.coverage import Coverage
from tap_audit_events.run import organization as organizations
from tap_audit_events.run.failures import GivenUp
from tap_audit_events.run.new_events import NewEvents
from tap_audit_events.run.organization import Organization
from tap_audit_events.run.organizations_plan import OrganizationPage, OrganizationsPlan
from tap_audit_events.run.run import Run
from tap_audit_events.run.tokens import TokenGroup
from tap_audit_events.service.authenticator import AccessTokenAuthenticator
from tap_audit_events.service.client import Client
from tap_audit_events.service.rate_limiter import RequestCounts
from tap_audit_events.singer.bookmarks import Bookmarks
from tap_audit_events.singer.coverage_stream import CoverageStream
from tap_audit_events.singer.state import has_time
from tap_audit_events.singer.stream import AuditEventsStream
from tests.simulation.mutations import Mutation, Patch

FIRST = "00000000-0000-4000-8000-000000000000"

# Bookmarks


def the_bookmark_of_another(patch: Patch) -> None:
    """An organization starts where another one was read to."""

    def of(self: Bookmarks, organization_id: str) -> dict[str, Any]:
        others = [each for each in self._partitions.values() if has_time(each)]
        own = real(self, organization_id)
        if others and not has_time(own):
            entry = others[0]["watermark"][0] | {"organization_id": organization_id}
            return others[0] | {"watermark": [entry]}
        return own

    real = Bookmarks.of
    patch.setattr(Bookmarks, "of", of)


def a_failure_counts_as_read(patch: Patch) -> None:
    """The bookmark of an organization that failed moves to the end of its range."""

    def keep_bookmarks(self: AuditEventsStream) -> None:
        for each in self._changed.values():
            if each.error is not None and each.window is not None:
                each.delivery.watermark.bookmark = each.window.end
        real(self)

    real = AuditEventsStream._keep_bookmarks
    patch.setattr(AuditEventsStream, "_keep_bookmarks", keep_bookmarks)


def a_failure_is_not_told(patch: Patch) -> None:
    """A run whose organizations failed ends as if all were read."""
    patch.setattr(Run, "check_errors", lambda _: None)


def a_failure_ends_all(patch: Patch) -> None:
    """After one organization fails, the others are not read to their end."""

    def next_page(self: Any) -> OrganizationPage | None:
        found: OrganizationPage | None = real(self)
        if found is not None and found.page is None and found.member.error is not None:
            error = service_error("AE-500")
            self._give_up(GivenUp(list(self._groups), error, "one has failed"))
            for member in self._open:
                member.error = found.member.error
        return found

    real = OrganizationsPlan.next_page
    patch.setattr(OrganizationsPlan, "next_page", next_page)


def bookmarks_of_others_are_dropped(patch: Patch) -> None:
    """An organization that is removed loses its bookmark."""

    def start(
        self: Bookmarks, stream_state: dict[str, Any], ids: Collection[str], *, in_partitions: bool
    ) -> None:
        stream_state["partitions"] = [
            each
            for each in stream_state.get("partitions", ())
            if each["context"]["organization_id"] in ids
        ]
        real(self, stream_state, ids, in_partitions=in_partitions)

    real = Bookmarks.__init__
    patch.setattr(Bookmarks, "__init__", start)


def the_bookmark_in_a_partition_is_not_found(patch: Patch) -> None:
    """Events that a run for several organizations read are read again by a run for one of them."""

    def of(self: Bookmarks, organization_id: str) -> dict[str, Any]:
        return real(self, organization_id) if self._in_partitions else self._state

    real = Bookmarks.of
    patch.setattr(Bookmarks, "of", of)


# Records and requests


def one_token_serves_all(patch: Patch) -> None:
    """Organizations are requested with the token of another."""

    def client(self: TokenGroup, settings: Settings) -> Client:
        made = real(self, settings)
        made.authenticator = first.setdefault(self.limiter.run, made.authenticator)
        return made

    first: dict[RequestCounts, AccessTokenAuthenticator] = {}
    real = TokenGroup.client
    patch.setattr(TokenGroup, "client", client)


# Coverage


def a_record_before_its_events(patch: Patch) -> None:
    """A run that is killed leaves a coverage record of events that were not written."""

    def note(self: AuditEventsStream, page: NewEvents) -> None:
        real(self, page)
        if self._coverage.add(page.organization):
            self._write_coverage()

    real = AuditEventsStream._note
    patch.setattr(AuditEventsStream, "_note", note)


def counts_are_lost_with_the_run(patch: Patch) -> None:
    """The events that a run counted before it was killed are not in STATE."""

    def to_json(self: Coverage) -> dict[str, Any]:
        types = self.action_types, self.exclude_action_types
        return real(Coverage(self.covered_from, *types, self.previous_digest))

    real = Coverage.to_json
    patch.setattr(Coverage, "to_json", to_json)


def uncounted_runs_stay_in_the_chain(patch: Patch) -> None:
    """A record covers events of a run without the coverage stream, which did not count them."""

    def coverage_json(self: Organization, given: Mapping[str, Any]) -> Any:
        return real(self, given) or given.get("coverage")

    real = Organization._coverage_json
    patch.setattr(Organization, "_coverage_json", coverage_json)


def the_chain_starts_again(patch: Patch) -> None:
    """Each record begins at the bookmark instead of where the last one ends."""
    patch.setattr(organizations, "chain_of", lambda _: None)


def the_range_ends_later_than_it_was_read(patch: Patch) -> None:
    """A record covers the seconds until it is written."""

    def add(self: CoverageStream, organization: Organization) -> bool:
        if organization.window is not None:
            now = instant_of(self._now())
            end = max(now, organization.window.end)
            organization.window = replace(organization.window, end=end)
        return real(self, organization)

    real = CoverageStream.add
    patch.setattr(CoverageStream, "add", add)


IMPORTANT: list[Mutation] = [
    the_bookmark_of_another,
    a_failure_counts_as_read,
    a_record_before_its_events,
    counts_are_lost_with_the_run,
    bookmarks_of_others_are_dropped,
]
"""Mutations that every run of the tests plays."""

OTHERS: list[Mutation] = [
    a_failure_is_not_told,
    a_failure_ends_all,
    the_bookmark_in_a_partition_is_not_found,
    one_token_serves_all,
    uncounted_runs_stay_in_the_chain,
    the_chain_starts_again,
    the_range_ends_later_than_it_was_read,
]
