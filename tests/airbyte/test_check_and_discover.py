"""``check`` reports in a sentence whether the settings work; ``discover`` describes the stream."""

from typing import Any

import pytest
from jsonschema import Draft7Validator

from tap_audit_events.sandbox import Fault, Service
from tests.airbyte.conftest import Source
from tests.airbyte.source import Output, run_source
from tests.builders import an_event


def status(done: Output) -> dict[str, Any]:
    assert done.exit_code == 0
    assert done.messages[-1]["type"] == "CONNECTION_STATUS"
    (found,) = done.of_type("CONNECTION_STATUS")
    return dict(found)


def test_a_check_with_working_settings_succeeds(service: Service, source: Source) -> None:
    service.add([an_event()])
    assert status(source("check")) == {"status": "SUCCEEDED"}


@pytest.mark.parametrize(
    ("code", "retry_after", "begins"),
    [
        (401, None, "AE-401: The access token is missing, unknown or expired"),
        (403, None, "AE-403: The access token may not read the audit events"),
        (500, "0", "AE-500: The service failed"),
    ],
)
def test_a_failed_check_says_why_in_a_sentence(
    code: int, retry_after: str | None, begins: str, service: Service, source: Source
) -> None:
    """The exit code is 0 even if the service fails, as the check itself has worked."""
    service.add_faults([Fault(kind="status", code=code, retry_after=retry_after)])
    found = status(source("check", max_retries=1))
    assert found["status"] == "FAILED"
    assert found["message"].startswith(begins)


def test_all_wrong_settings_are_in_one_message() -> None:
    done = run_source("check", {"base_url": "http://example.com", "page_size": 0})
    message = status(done)["message"]
    assert "base_url must be https" in message
    assert "organization_id is missing" in message
    assert "page_size is 0" in message


def test_a_missing_token_is_not_looked_for_elsewhere(source: Source) -> None:
    """Airbyte's settings are only in the config file, not in the environment or another file."""
    found = status(source("check", access_token=None, access_token_file="/etc/hostname"))
    assert found["message"] == (
        "AE-SETTINGS: 'access_token_file' is not a setting: did you mean access_token?;"
        " AE-SETTINGS: access_token is missing: set it to a personal access token with the scope"
        " organization:audit_events_read"
    )


def test_an_empty_list_is_unset(source: Source) -> None:
    """A form may leave an empty list after the last organization was removed."""
    assert status(source("check", organizations=[], action_types=[])) == {"status": "SUCCEEDED"}
    found = status(source("check", organizations=[], organization_id=None))
    assert "organization_id is missing" in found["message"]


def test_discover_describes_the_stream(source: Source) -> None:
    done = source("discover")
    assert done.exit_code == 0
    (catalog,) = done.of_type("CATALOG")
    (stream,) = catalog["streams"]
    schema = stream.pop("json_schema")
    assert stream == {
        "name": "audit_events",
        "supported_sync_modes": ["full_refresh", "incremental"],
        "source_defined_cursor": True,
        "default_cursor_field": ["occurredAt"],
        "source_defined_primary_key": [["id"]],
        "is_resumable": False,
    }
    assert schema["properties"]["occurredAt"]["airbyte_type"] == "timestamp_with_timezone"
    Draft7Validator.check_schema(schema)
    Draft7Validator(schema).validate(an_event())


def test_the_schema_fits_the_records(service: Service, source: Source) -> None:
    """The schema fits even if settings change the shape of the records."""
    service.add([an_event()])
    shape = {"details_format": "string", "raw_event": True}
    (catalog,) = source("discover", **shape).of_type("CATALOG")
    schema = catalog["streams"][0]["json_schema"]
    (record,) = source("read", **shape).records
    assert isinstance(record["raw_event"], str)
    assert schema["properties"].keys() >= record.keys()
    Draft7Validator(schema).validate(record)
    assert schema["properties"]["action"]["properties"]["details"]["type"] == ["string", "null"]


def test_discover_needs_valid_settings() -> None:
    done = run_source("discover", {"details_format": "text"})
    assert done.exit_code == 1
    (failure,) = done.failures
    assert failure["failure_type"] == "config_error"
    assert "details_format must be" in failure["message"]
