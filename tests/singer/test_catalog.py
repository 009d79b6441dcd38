"""Deselected fields are left out of a record as the SDK leaves them out."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from singer_sdk.helpers._catalog import pop_deselected_record_properties
from singer_sdk.singerlib import Metadata, MetadataMapping

from tap_audit_events.singer.catalog import deselected, leave_out

names = st.sampled_from(["id", "action", "details", "context", "properties", "items", ""])
values = st.recursive(
    st.none() | st.integers(0, 3) | st.text(max_size=2),
    lambda inner: st.dictionaries(names, inner, max_size=4) | st.lists(inner, max_size=2),
    max_leaves=12,
)
records = st.dictionaries(names, values, max_size=5)
paths = st.lists(names, min_size=1, max_size=4).map(tuple)
breadcrumbs = paths.map(lambda path: tuple(part for name in path for part in ("properties", name)))
odd_breadcrumbs = st.lists(names, max_size=4).map(tuple)
inclusions = st.sampled_from([None, *Metadata.InclusionType])
metadata = st.builds(Metadata, inclusion=inclusions, selected=st.none() | st.booleans())


@given(records, st.dictionaries(breadcrumbs | odd_breadcrumbs, metadata, max_size=8))
def test_the_fields_that_are_left_out_are_those_that_the_sdk_leaves_out(
    record: dict[str, Any], entries: dict[tuple[str, ...], Metadata]
) -> None:
    """This holds for any metadata of any breadcrumb, and for any value there."""
    entries.pop((), None)  # a stream that is not selected is not read
    mask = MetadataMapping(entries).resolve_selection()
    by_the_sdk = copy.deepcopy(record)
    pop_deselected_record_properties(by_the_sdk, {}, mask)
    leave_out(record, deselected(mask))
    assert record == by_the_sdk
