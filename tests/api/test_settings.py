"""The arguments of `AuditEvents` are the settings of the tap, with the same checks."""

import inspect
import logging
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events import AuditEvents, RefusedError, SettingsError
from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.config.settings import Settings, read_settings
from tap_audit_events.sandbox import Service
from tests.api.logs import events, ids
from tests.builders import ORGANIZATION_ID, an_event

VALID: dict[str, Any] = {
    "base_url": "https://audit.example.com",
    "organization_id": ORGANIZATION_ID,
    "access_token": "acme_pat_0123456789",
}
WRONG: dict[str, list[Any]] = {
    "base_url": ["http://audit.example.com", "", 5],
    "organization_id": ["acme", 7],
    "organizations": ["x", [{"organization_id": "acme"}], [{"organization_id": "acme", 1: 2}]],
    "access_token": ["two words", ""],
    "access_token_file": ["/does/not/exist"],
    "start_date": ["yesterday", 5],
    "end_date": ["2024-5-6"],
    "action_types": ["a", ["a,b"], [5]],
    "exclude_action_types": ["a", [5]],
    "page_size": [0, 1001, "x", True, Decimal("NaN")],
    "concurrency": [0, 33],
    "lookback_seconds": [-1],
    "request_timeout_seconds": [0, "soon", float("inf")],
    "max_retries": [-1],
    "max_response_megabytes": [0, 5000],
    "quarantine_file": ["file:///quarantine.jsonl", "a\0b", 5],
    "details_format": ["text"],
    "raw_event": ["perhaps"],
    "user_agent": ["two\nlines"],
}


def test_every_setting_is_an_argument() -> None:
    """The settings of only the tap are not: stream maps, batches and flattening."""
    arguments = inspect.signature(AuditEvents).parameters
    assert {*arguments} == {*Settings.__struct_fields__} - {"is_one_of_several"}
    assert list(arguments) == list(SETTINGS_SCHEMA["properties"])
    assert {each.kind for each in arguments.values()} == {inspect.Parameter.KEYWORD_ONLY}
    required = {name for name, each in arguments.items() if each.default is inspect.Parameter.empty}
    assert required == set(SETTINGS_SCHEMA["required"])
    assert arguments.keys() == WRONG.keys()


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_the_checks_are_those_of_the_tap(name: str, value: object) -> None:
    """For each wrong value, the lines of the error are the same."""
    given: dict[str, Any] = {**VALID, name: value}
    if name == "access_token_file":
        del given["access_token"]
    if name == "organizations":
        del given["organization_id"]
    with pytest.raises(SettingsError) as of_tap:
        read_settings(given)
    with pytest.raises(SettingsError) as of_api:
        AuditEvents(**given)
    assert of_api.value.lines == of_tap.value.lines
    assert of_api.value.lines[0].startswith("AE-SETTINGS: ")


def test_a_missing_argument_is_not_looked_for_in_the_environment() -> None:
    """`AuditEvents` never reads the environment, so the error does not advise to use it."""
    with pytest.raises(SettingsError) as raised:
        AuditEvents(base_url="https://api.example.com")
    assert "environment" not in str(raised.value)
    assert "access_token_file" in str(raised.value)


@pytest.fixture
def variables(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The settings as environment variables, and no others."""
    for name in SETTINGS_SCHEMA["properties"]:
        monkeypatch.delenv(f"TAP_AUDIT_EVENTS_{name.upper()}", raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(f"TAP_AUDIT_EVENTS_{name.upper()}", value)
    return monkeypatch


def test_settings_may_be_environment_variables(
    service: Service, variables: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Arguments override them, also a token of the other kind."""
    service.add(events(0, 5))
    variables.setenv("TAP_AUDIT_EVENTS_PAGE_SIZE", "2")
    variables.setenv("TAP_AUDIT_EVENTS_CONCURRENCY", "")
    assert len(ids(AuditEvents.from_env().pages())) == 5
    token = tmp_path / "token"
    token.write_text(service.access_token)
    token.chmod(0o600)
    variables.setenv("TAP_AUDIT_EVENTS_ACCESS_TOKEN", "acme_pat_wrong")
    log = AuditEvents.from_env(
        access_token_file=str(token), page_size=4, action_types=("workspace_create",)
    )
    assert len(ids(log.pages())) == 5
    sizes = [request.params["pageSize"] for request in service.requests]
    assert {*sizes} == {"2", "4"}
    assert sizes[-1] == "4"


def test_mistakes_in_variables_and_arguments_are_named_together(
    variables: pytest.MonkeyPatch,
) -> None:
    """A misspelt name is a mistake in both; a setting of the tap alone is warned about."""
    variables.setenv("TAP_AUDIT_EVENTS_STARTDATE", "2026-01-01")
    variables.delenv("TAP_AUDIT_EVENTS_ORGANIZATION_ID")
    with pytest.raises(SettingsError) as raised:
        AuditEvents.from_env(pagesize=5)
    variable, argument, missing = raised.value.lines
    assert variable.endswith("did you mean TAP_AUDIT_EVENTS_START_DATE?")
    assert argument.endswith("'pagesize' is not a setting: did you mean page_size?")
    assert "organization_id is missing" in missing
    assert "TAP_AUDIT_EVENTS_ORGANIZATION_ID" in missing


def test_a_stream_map_in_a_variable_is_warned_about(
    variables: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It masks nothing here."""
    variables.setenv("TAP_AUDIT_EVENTS_STREAM_MAPS", '{"audit_events": {"actor": "__NULL__"}}')
    AuditEvents.from_env()
    assert "stream_maps shapes the records of the tap and is ignored here" in caplog.text


@pytest.mark.parametrize(
    ("moment", "problem"),
    [
        (
            datetime(2026, 1, 1),  # noqa: DTZ001 - that is the mistake
            "has no time zone: use an aware datetime, such as datetime(2026, 1, 1, tzinfo=UTC)",
        ),
        (
            datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
            "is outside of the years 1 to 9999 in UTC",
        ),
    ],
)
def test_a_time_that_is_not_an_instant_is_refused(moment: Any, problem: str) -> None:
    """Arguments of the class and of `pages` are checked in the same way."""
    with pytest.raises(SettingsError) as raised:
        AuditEvents(**VALID, start_date=moment)
    assert raised.value.lines == (f"AE-SETTINGS: start_date {problem}",)
    with pytest.raises(SettingsError) as raised:
        AuditEvents(**VALID).pages(end=moment)
    assert raised.value.lines == (f"AE-SETTINGS: end {problem}",)


@pytest.mark.parametrize("day", ["2024-05-06", date(2024, 5, 6)])
def test_a_date_is_the_whole_day_in_utc(
    day: date | str, service: Service, settings: dict[str, Any]
) -> None:
    """This holds for the settings and for the arguments of a call."""
    times = [
        *("2024-05-05T23:59:59.9999999Z", "2024-05-06T00:00:00Z"),
        *("2024-05-06T23:59:59.9999999Z", "2024-05-07T00:00:00Z"),
    ]
    service.add([an_event(id=time, at=time) for time in times])
    assert ids(AuditEvents(**settings).pages(day, day)) == times[1:3]
    assert ids(AuditEvents(**settings, start_date=day, end_date=day).pages()) == times[1:3]


def test_the_token_is_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Neither the object, nor an error, nor the warning of a token of an unusual form shows it."""
    with caplog.at_level(logging.WARNING, "tap_audit_events"):
        log = AuditEvents(**VALID | {"access_token": "0123456789abcdef"})
    assert "pat_" in caplog.text
    assert "0123456789abcdef" not in caplog.text + repr(log) + str(vars(log))
    with pytest.raises(SettingsError) as raised:
        AuditEvents(**VALID | {"base_url": "https://acme_pat_0123456789"}, page_size="x")  # type: ignore[arg-type]
    assert "0123456789" not in str(raised.value)


def test_each_call_uses_the_newest_token(
    service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Each call reads the file; if it is gone, the object uses the first token that it read."""
    path = tmp_path / "token"
    path.write_text(settings.pop("access_token"))
    log = AuditEvents(**settings, access_token_file=str(path))
    assert not list(log.pages())
    service.access_token = "sandbox_pat_of-tomorrow"
    path.write_text(service.access_token)
    assert not list(log.pages())
    assert not list(log.pages())
    path.unlink()
    with pytest.raises(RefusedError, match=r"^AE-401"):
        list(log.pages())
    assert [request.status for request in service.requests] == [200, 200, 200, 401]


def test_the_shape_of_events_depends_on_the_settings(
    service: Service, settings: dict[str, Any]
) -> None:
    """`details_format` and `raw_event` change `events`, but not `raw` and the Arrow columns."""
    service.add(events(0, 1))
    log = AuditEvents(**settings, details_format="string", raw_event=True, action_types=("a", "b"))
    assert list(log.pages()) == []
    assert service.requests[-1].params["actionTypes"] == "a,b"
    (page,) = AuditEvents(**settings, details_format="string", raw_event=True).pages()
    assert page.events[0]["action"]["details"] == '{"fields":{"name":"Research"}}'
    assert page.events[0]["raw_event"].encode() == page.raw[0]
    assert page.arrow().column("action_details")[0].as_py() == '{"fields":{"name":"Research"}}'
