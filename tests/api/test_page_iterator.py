"""The iterator that `AuditEvents.pages` returns, closed or interrupted while it is in use."""

from collections.abc import Generator

import pytest

from tap_audit_events import EventPage
from tap_audit_events.api.page_iterator import PageIterator
from tap_audit_events.events.record_shape import RecordShape
from tap_audit_events.extraction.shutdown import Stop


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_an_interruption_is_raised_again_if_the_iterator_is_used_again(
    error: type[BaseException],
) -> None:
    """After Ctrl-C or a time limit, as in a notebook, the range must not seem complete."""

    def pages() -> Generator[EventPage, None, None]:
        yield EventPage([], [], organization_id="o", shape=RecordShape(), state=dict)
        raise error

    iterator = PageIterator(pages(), Stop())
    next(iterator)
    for _ in range(3):
        with pytest.raises(error):
            next(iterator)
    iterator.close()
    assert next(iterator, None) is None
