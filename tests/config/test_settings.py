"""Each bad setting is refused before any request, with one line."""

from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.config.schema import SETTINGS_SCHEMA
from tap_audit_events.config.settings import Settings, read_settings
from tap_audit_events.errors.exceptions import SettingsError
from tap_audit_events.sandbox import Service
from tests.builders import ORGANIZATION_ID, an_event
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.running import run

TOKEN = "acme_pat_not-to-be-seen"
GOOD: dict[str, Any] = {
    "base_url": "https://api.example.com",
    "organization_id": ORGANIZATION_ID,
    "access_token": TOKEN,
}
NO_DATE = "is not an RFC 3339 date-time with an offset"

BAD = [
    ("base_url", None, "is missing: set it to the https URL"),
    ("base_url", "", "is missing: set it to the https URL"),
    ("base_url", " ", "is empty"),
    ("base_url", 5, "must be a string"),
    ("base_url", "api.example.com", "is not a usable URL"),
    ("base_url", "ftp://api.example.com", "is not a usable URL"),
    ("base_url", "https://", "is not a usable URL"),
    ("base_url", "https://api.example.com:99999", "has no usable host or port"),
    ("base_url", "http://api.example.com", "must be https"),
    *(
        ("base_url", f"http://{host}", "must be https")
        for host in (
            *("10.0.0.1", "0.0.0.1", "127.0.0.1.example.com", "127-0-0-1.example.com", "128.0.0.1"),
            *("127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "localhost.", "localhosts"),
            *("localhost.example.com:8080", "example.com", "a.localhost", "localhost.localdomain"),
            *("[::2]", "[::ffff:10.0.0.1]", "[fe80::1%25lo]"),
        )
    ),
    ("base_url", "http://localhost@evil.example", "must not contain a user"),
    ("base_url", "http://localhost:1@evil.example", "must not contain a user, a password"),
    ("base_url", "http://evil.example#@localhost", "must not contain a user"),
    ("base_url", "http://evil.example\\@localhost", "backslashes"),
    ("base_url", "http://[::1].example.com", "has no usable host or port"),
    ("base_url", "http://[::1]example.com:80", "has no usable host or port"),
    ("base_url", "http://example.com[::1]", "has no usable host or port"),
    ("base_url", f"https://me:{TOKEN}@api.example.com", "must not contain a user, a password"),
    ("base_url", "https://api.example.com?x=1", "must not contain a user, a password, a query"),
    ("base_url", "https://api.example.com#here", "a fragment"),
    ("base_url", "https://api.example.com/a b", "without white space"),
    ("base_url", "https://api.example.com\n", "without white space"),
    ("base_url", "https://exämple.com", "printable ASCII"),
    ("base_url", "https://[bad", "has no usable host or port"),
    ("base_url", "https://a.exampl`e", "has no usable host or port"),
    ("base_url", "https://a.example\\.b.example", "backslashes"),
    ("organization_id", None, "is missing: set it to the UUID"),
    ("organization_id", " ", "is empty"),
    ("organization_id", "acme", "is not a UUID"),
    ("organization_id", f"{{{ORGANIZATION_ID}}}", "is not a UUID"),
    ("organization_id", f"{ORGANIZATION_ID}/../x", "is not a UUID"),
    ("organization_id", ORGANIZATION_ID.replace("-", ""), "is not a UUID"),
    ("organization_id", f"{ORGANIZATION_ID}\n", "ends with white space, such as a line break"),
    ("access_token", None, "is missing: set it to a personal access token"),
    ("access_token", "  ", "is empty"),
    ("access_token", 12345, "must be a string"),
    ("access_token", f"{TOKEN}\n", "one word of printable ASCII"),
    ("access_token", f"{TOKEN} {TOKEN}", "one word of printable ASCII"),
    ("access_token", f"{TOKEN}\x00", "one word of printable ASCII"),
    ("access_token", f"{TOKEN}é", "one word of printable ASCII"),
    ("access_token", f"Bearer {TOKEN}", "begins with 'Bearer': write the token alone"),
    ("access_token", "x" * 8193, "is larger than any token: at most 8,192 bytes"),
    ("access_token", f'"{TOKEN}"', "has quotes around the token: remove them"),
    ("access_token", f"'{TOKEN}'", "has quotes around the token: remove them"),
    ("start_date", "2026-1-31", NO_DATE),
    ("start_date", "20260131", NO_DATE),
    ("end_date", "2026-02-30", "is not a date-time that exists"),
    ("start_date", " ", "is empty"),
    ("start_date", "yesterday", NO_DATE),
    ("start_date", " 2026-01-31T00:00:00Z", "begins or ends with white space"),
    ("start_date", "2026-01-31T00:00:00", NO_DATE),
    ("start_date", "2026-02-30T00:00:00Z", "is not a date-time that exists"),
    ("start_date", 20260131, "must be a string"),
    ("end_date", "2026-01-31 00:00:00", NO_DATE),
    ("action_types", "workspace_create", "must be a list of strings"),
    ("action_types", [1], "must be a list of strings"),
    ("action_types", [""], "has an empty item"),
    ("action_types", ["a,b"], "has a comma in an item"),
    ("action_types", ["a", " b"], "has white space at the start or end of an item"),
    ("action_types", ["a "], "has white space at the start or end of an item"),
    ("action_types", ["a\nb"], "has a control character in an item"),
    ("action_types", ["\ud800"], "has a control character in an item"),
    ("page_size", 0, "is 0: it must be 1 to 1000"),
    ("page_size", 1001, "is 1001: it must be 1 to 1000"),
    ("page_size", 1.5, "must be a whole number"),
    ("page_size", True, "must be a whole number"),
    ("page_size", "many", "must be a whole number"),
    ("concurrency", 0, "is 0: it must be 1 to 32"),
    ("concurrency", 33, "is 33: it must be 1 to 32"),
    ("lookback_seconds", -1, "is -1: it must be 0 or more"),
    ("request_timeout_seconds", 0, "must be a number of seconds above 0"),
    ("request_timeout_seconds", -3, "must be a number of seconds above 0"),
    ("request_timeout_seconds", 1e300, "at most 3600"),
    ("request_timeout_seconds", float("nan"), "must be a number of seconds"),
    ("max_retries", -1, "is -1: it must be 0 or more"),
    ("max_response_megabytes", 0, "is 0: it must be 1 to 2000"),
    ("max_response_megabytes", 2001, "is 2001: it must be 1 to 2000"),
    ("user_agent", " ", "is empty"),
    ("user_agent", "a\r\nX-Other: b", "must be printable ASCII on one line"),
]


@pytest.mark.parametrize(("name", "value", "problem"), BAD)
def test_the_error_about_a_bad_setting_names_it_and_the_problem(
    name: str, value: object, problem: str
) -> None:
    """The error is one line, and does not contain the token."""
    with pytest.raises(SettingsError) as error:
        read_settings(GOOD | {name: value})
    (line,) = error.value.lines
    assert line.startswith(f"AE-SETTINGS: {name} ")
    assert problem in line
    assert TOKEN not in line
    assert "12345" not in line


FIRST_OF_EACH = {name: (name, value, problem) for name, value, problem in reversed(BAD)}
TOKENS = [each for each in BAD if each[0] == "access_token"]


def test_an_organization_keeps_the_file_of_its_token(tmp_path: Path) -> None:
    """The file is read again if the service refuses the token."""
    files = [str(tmp_path / name) for name in ("shared", "own")]
    for file in files:
        Path(file).write_text(TOKEN)
    items = [{}, {"access_token_file": files[1]}, {"access_token": TOKEN}]
    organizations = [
        each | {"organization_id": f"{n}{ORGANIZATION_ID[1:]}"} for n, each in enumerate(items)
    ]
    several = {"organization_id": None, "access_token": None, "organizations": organizations}
    settings = read_settings(GOOD | several | {"access_token_file": files[0]})
    assert [each.access_token_file for each in settings.each()] == [*files, None]


def test_each_mistake_in_several_organizations_is_named() -> None:
    """Each mistake has a line, which names its place in the list."""
    items = [{"organization_id": "x", "name": "a"}, 5, {"organization_id": ORGANIZATION_ID}]
    with pytest.raises(SettingsError) as raised:
        read_settings(GOOD | {"organization_id": None, "organizations": items})
    places = [line.split()[1] for line in raised.value.lines]
    assert sorted(places) == [
        "organizations[0]",
        "organizations[0].organization_id",
        "organizations[1]",
    ]


def test_an_organization_that_is_in_the_list_twice_is_refused() -> None:
    """Its events would be delivered twice. Capital letters in the UUID make no difference."""
    items = [{"organization_id": each} for each in (ORGANIZATION_ID, ORGANIZATION_ID.upper())]
    with pytest.raises(SettingsError) as raised:
        read_settings(GOOD | {"organization_id": None, "organizations": items})
    (line,) = raised.value.lines
    assert line.endswith(f"[1].organization_id {ORGANIZATION_ID} is in the list twice")


@pytest.mark.parametrize(("name", "value", "problem"), [*FIRST_OF_EACH.values(), *TOKENS[1:]])
def test_a_bad_setting_ends_the_command_with_one_line(
    name: str, value: object, problem: str
) -> None:
    """The exit code is 1, stdout is empty, and the log does not contain the token."""
    done = run(GOOD | {name: value})
    assert done.exit_code == 1
    (line,) = done.errors
    assert line.startswith(f"AE-SETTINGS: {name} ")
    assert problem in line
    assert done.stdout == b""
    assert TOKEN not in done.log
    assert "12345" not in done.log


@pytest.mark.parametrize(
    ("text", "is_hinted"),
    [
        ("2026-01-31T00:00:00", True),
        ("2026-01-31 00:00:00+00:00", True),
        ("2026-02-30T00:00:00Z", False),
        ("yesterday", False),
    ],
)
def test_only_a_time_that_yaml_may_have_changed_needs_quotes(text: str, is_hinted: bool) -> None:
    """Meltano reads a time without quotes as one, and writes it in another form."""
    meltano = {"MELTANO_PROJECT_ROOT": "/srv"}
    line = only_error(run(GOOD | {"start_date": text}, environment=meltano))
    assert line.endswith("in a YAML file write it in quotes") == is_hinted
    assert "YAML" not in only_error(run(GOOD | {"start_date": text}))


DAY = "2024-05-06"
TIMES = [
    "2024-05-05T23:59:59.999999999999Z",
    "2024-05-06T00:00:00Z",
    "2024-05-06T12:00:00Z",
    "2024-05-06T23:59:59.9999999Z",
    f"2024-05-06T23:59:59.{'9' * 40}8Z",
    "2024-05-07T00:00:00Z",
]


@pytest.mark.parametrize("source", ["file", "environment"])
def test_a_date_alone_is_the_whole_day_in_utc(source: str, service: Service, sync: Sync) -> None:
    """The start is its midnight; the end holds every event of the day, at any precision."""
    service.add([an_event(id=time, at=time) for time in TIMES])
    dates = {"start_date": DAY, "end_date": DAY}
    if source == "environment":
        variables = {f"TAP_AUDIT_EVENTS_{name.upper()}": day for name, day in dates.items()}
        done = sync("--config", "ENV", environment=variables)
    else:
        done = sync(**dates)
    times = [record["occurredAt"] for record in done.raise_for_exit_code().records]
    assert times == TIMES[1:5]
    request = service.requests[0].params
    assert request["endTime"] == "2024-05-07T00:00:00Z"


def test_each_bad_setting_has_its_own_line() -> None:
    """All problems are reported at once."""
    done = run({"base_url": "http://example.com", "page_size": 0, "concurrency": 99})
    assert [line.split()[1] for line in done.errors] == [
        "base_url",
        "organization_id",
        "access_token",
        "page_size",
        "concurrency",
    ]


def test_an_end_before_the_start_is_refused() -> None:
    """The two dates are compared as instants."""
    dates = {"start_date": "2026-01-01T01:00:00+01:00", "end_date": "2025-12-31T23:59:59.999Z"}
    done = run(GOOD | dates)
    assert done.exit_code == 1
    assert done.errors == [
        "AE-SETTINGS: end_date is before start_date: it must be the same or later"
    ]


def test_bad_settings_send_no_request(service: Service, sync: Sync) -> None:
    """Settings are checked before the first request."""
    assert sync(page_size=0).exit_code == 1
    assert service.requests == []


def test_an_unknown_setting_is_an_error_with_the_nearest_name(service: Service, sync: Sync) -> None:
    """A misspelt setting does not let the run read everything. All mistakes are named together."""
    done = sync(
        start="2026-01-31T00:00:00Z",
        pagesize=5,
        zzz=1,
        flattening_enable=True,
        concurrency=0,
        batch_config={"encodings": {}},
        stream_maps={"others": {}},
        flattening_max_depth=-1,
    )
    assert done.exit_code == 1
    begins = [line.split(": ", 1)[1] for line in done.errors]
    assert begins[:5] == [
        "'flattening_enable' is not a setting: did you mean flattening_enabled?",
        "'pagesize' is not a setting: did you mean page_size?",
        "'start' is not a setting: did you mean start_date?",
        "'zzz' is not a setting, nor similar to one: remove it",
        "concurrency is 0: it must be 1 to 32",
    ]
    assert "batch_config has no setting 'encodings'" in begins[5]
    assert begins[-1] == "flattening_max_depth must be a whole number, 0 or more"
    assert any(line.startswith("AE-STREAM-MAPS: ") for line in done.errors)
    assert service.requests == []


def test_settings_of_the_sdk_and_of_platforms_are_not_misspelt(sync: Sync) -> None:
    """Meltano keeps extras with a leading underscore; the SDK has settings for other taps."""
    accepted = {"_select": ["*.*"], "faker_config": {"seed": 1}, "stream_map_config": {"a": 1}}
    done = sync(**accepted, use_singer_decimal=True).raise_for_exit_code()
    assert done.warnings == ["'use_singer_decimal' is not a setting and is ignored"]


def test_a_token_of_another_kind_gets_a_warning(service: Service, sync: Sync) -> None:
    """A personal access token contains `pat_` (interface.md 5, rule 2)."""
    service.access_token = "something-else"
    done = sync(access_token="something-else").raise_for_exit_code()
    assert ["'pat_'" in line for line in done.warnings] == [True]
    assert "something-else" not in done.log


@pytest.mark.parametrize(
    "url",
    [
        *("http://localhost:1", "http://LOCALHOST", "http://127.1.2.3", "http://[::1]:8080"),
        "https://a.example/prefix/",
    ],
)
def test_a_url_may_be_https_or_lead_to_this_machine(url: str) -> None:
    """Plain http is allowed to a loopback host. A slash at the end does not matter."""
    assert read_settings(GOOD | {"base_url": url}).base_url == url.rstrip("/")


def test_null_and_an_empty_text_are_treated_as_unset() -> None:
    """Platforms send them for a field of a form that was left empty."""
    settings = read_settings(GOOD | {"start_date": None, "page_size": "", "action_types": None})
    assert (settings.start_date, settings.page_size, settings.action_types) == (None, 1000, ())


def test_mistakes_in_organizations_are_reported_with_the_others() -> None:
    """A mistake in the shared token is reported only once."""
    items = [{"organization_id": "x"}, {"organization_id": ORGANIZATION_ID}]
    wrong = GOOD | {"organization_id": None, "access_token": "a b", "organizations": items}
    done = run(wrong | {"page_size": 0})
    assert [line.split()[1] for line in done.errors] == [
        "access_token",
        "page_size",
        "organizations[0].organization_id",
    ]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"stream_maps": "x"},
            'AE-SETTINGS: stream_maps must be an object, for example {"audit_events": ',
        ),
        (
            {"stream_maps": {"audit_events": {"retention_days": 90}}},
            "AE-SETTINGS: stream_maps.audit_events must be null or an object of texts, for example",
        ),
        ({"flattening_enabled": "x"}, "AE-SETTINGS: flattening_enabled must be true or false"),
        (
            {"stream_maps": {"audit_events": {"id": "("}}},
            "AE-STREAM-MAPS: stream_maps or the flattening settings cannot be used (Map",
        ),
        (
            {"flattening_enabled": True, "flattening_max_depth": "x"},
            "AE-SETTINGS: flattening_max_depth must be a whole number, 0 or more",
        ),
        ({"flattening_max_depth": -1}, "AE-SETTINGS: flattening_max_depth must be a whole number"),
        (
            {"flattening_enabled": True},
            "AE-SETTINGS: flattening_max_depth is missing: set it to 1 or more if",
        ),
    ],
)
def test_bad_settings_of_the_sdk_are_refused_too(settings: dict[str, Any], problem: str) -> None:
    """Settings of stream maps and flattening are checked like the others."""
    done = run(GOOD | settings)
    assert done.exit_code == 1
    (line,) = done.errors
    assert line.startswith(problem)


def test_the_declared_settings_are_those_that_are_read() -> None:
    """`--about` shows the names, required settings, defaults and bounds that hold in a run."""
    assert {*SETTINGS_SCHEMA["properties"]} == {*Settings.__slots__} - {"is_one_of_several"}
    assert {*SETTINGS_SCHEMA["required"], "organization_id", "access_token"} == set(GOOD)
    defaults = read_settings(GOOD)
    for name in SETTINGS_SCHEMA["properties"]:
        declared = SETTINGS_SCHEMA["properties"][name]
        assert declared["title"]
        assert declared["description"]
        if "default" in declared:
            assert getattr(defaults, name) == declared["default"]
        for bound in ("minimum", "maximum"):
            if bound in declared:
                at_bound = read_settings(GOOD | {name: declared[bound]})
                assert getattr(at_bound, name) == declared[bound]
    assert SETTINGS_SCHEMA["properties"]["access_token"]["secret"] is True
