"""The SDK's own standard tests of a tap, on a sandbox with every field filled."""

from collections.abc import Iterator
from typing import Any

import pytest
from singer_sdk.testing import SuiteConfig, get_tap_test_class

from tap_audit_events.sandbox import Service, serve
from tap_audit_events.singer.tap import TapAuditEvents
from tests.builders import an_event
from tests.running import settings_for


def _service() -> Service:
    full_scope = an_event()["scope"] | {"channelId": "c-1"}
    full_entity = an_event()["entity"] | {"subtype": "private", "email": "x@example.com"}
    service = Service()
    service.add(
        an_event(id=str(n), at=f"2024-05-06T07:08:0{n}Z", scope=full_scope, entity=full_entity)
        for n in range(3)
    )
    return service


_SERVICE = _service()
_CONFIG = settings_for(_SERVICE, "http://127.0.0.1:1")  # the URL is set when the server runs


@pytest.fixture(autouse=True, scope="module")
def _served() -> Iterator[None]:
    # A worker may set this up more than once: other workers take tests from the middle of a module.
    with serve(_SERVICE) as server:
        _CONFIG["base_url"] = server.base_url
        yield


def _catalog() -> dict[str, Any]:
    """The catalog with both streams selected."""
    catalog = TapAuditEvents(config=_CONFIG, parse_env_config=False).catalog_dict
    for stream in catalog["streams"]:
        (root,) = [each for each in stream["metadata"] if not each["breadcrumb"]]
        root["metadata"]["selected"] = True
    return dict(catalog)


TestTapAuditEvents = get_tap_test_class(
    TapAuditEvents,
    config=_CONFIG,
    catalog=_catalog(),
    suite_config=SuiteConfig(max_records_limit=None),
    parse_env_config=False,
)
