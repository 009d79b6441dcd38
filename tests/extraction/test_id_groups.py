"""Which ids share a group in STATE, and when the group expires."""

from tap_audit_events.extraction.id_groups import Group, grouped
from tests.extraction.watermarks import at, digests_of


def test_ids_before_and_after_the_bookmark_are_in_different_groups() -> None:
    """Each group expires with its newest id; more than `size` ids in a group share one instant."""
    known = [(at(time), f"{time}") for time in range(1, 9)]
    known += [(at(9), "ties"), (at(9), "of"), (at(9), "one"), (at(9), "instant")]
    assert grouped(known, bookmark=at(5), size=3) == [
        Group(at(3), digests_of("123")),
        Group(at(4), digests_of("4")),
        Group(at(5), digests_of("5")),
        Group(at(8), digests_of("678")),
        Group(at(9), digests_of(["ties", "of", "one", "instant"])),
    ]
