"""A STATE that is large for its readers."""

import pytest

from tap_audit_events.sandbox import Service
from tests.conftest import Sync
from tests.singer.test_incremental import events


@pytest.mark.parametrize(("size", "is_large"), [(5_000_000, False), (6_000_000, True)])
def test_a_state_that_meltano_may_refuse_is_warned_about_once(
    size: int, is_large: bool, service: Service, sync: Sync
) -> None:
    """Its limit for a line is half of a buffer, which has 10 MiB in some versions."""
    service.add(events("08:00:00", "08:00:01", "08:00:02"))
    state = {"bookmarks": {"of_another_stream": {"note": "x" * size}}}
    done = sync(state=state, page_size=1).raise_for_exit_code()
    assert len(done.states) > 1
    found = [each for each in done.warnings if "STATE line" in each]
    assert len(found) == is_large
    if found:
        assert found[0].startswith("A STATE line has 5.7 MiB: ")
        assert "elt.buffer_size" in found[0]
