"""Each bad setting is refused before any request, with one line."""

from decimal import Decimal
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
OTHER_ID = f"{ORGANIZATION_ID[:-1]}{'1' if ORGANIZATION_ID[-1] == '0' else '0'}"

BAD: dict[str, dict[str, tuple[object, ...]]] = {
    "base_url": {
        "is missing: set it to the https URL": (None, ""),
        "is empty": (" ",),
        "must be a string": (5, ["https://api.example.com"]),
        "for example https://api.example.com": ("api.example.com", "ftp://api.example.com", "https://"),
        "has no usable host or port": (
            "https://api.example.com:99999", "https://[bad", "https://a.exampl`e",
        ),
        "must be https": ("http://api.example.com",),
        "must not contain a user, a password": (
            f"https://me:{TOKEN}@api.example.com", "https://api.example.com?x=1",
            "https://api.example.com#here",
        ),
        "printable ASCII": (
            "https://api.example.com/a b", "https://api.example.com\n", "https://exämple.com",
            "https://a.example\\.b.example",
        ),
    },
    "organization_id": {
        "is missing: set it to the UUID": (None,),
        "is empty": (" ",),
        "is not a UUID": (
            "acme", f"{{{ORGANIZATION_ID}}}", f"{ORGANIZATION_ID}/../x",
            ORGANIZATION_ID.replace("-", ""),
        ),
        "begins or ends with white space": (f"{ORGANIZATION_ID}\n",),
    },
    "access_token": {
        "is missing: set it to a personal access token": (None,),
        "is empty": ("  ",),
        "must be a string": (12345,),
        "one word of printable ASCII": (
            f"{TOKEN}\n", f"{TOKEN} {TOKEN}", f"{TOKEN}\x00", f"{TOKEN}é",
        ),
        "begins with 'Bearer'": (f"Bearer {TOKEN}",),
        "is larger than any token": ("x" * 8193,),
        "has quotes around the token": (f'"{TOKEN}"', f"'{TOKEN}'"),
    },
    "start_date": {
        "is not an RFC 3339 date-time with an offset": (
            "2026-1-31", "20260131", "yesterday", "2026-01-31T00:00:00",
        ),
        "is not a date-time that exists": ("2026-02-30T00:00:00Z",),
        "is empty": (" ",),
        "begins or ends with white space": (" 2026-01-31T00:00:00Z",),
        "must be a string: a time such as": (20260131, True),
    },
    "end_date": {
        "is not an RFC 3339 date-time with an offset": ("2026-01-31 00:00:00",),
        "is not a date-time that exists": ("2026-02-30",),
    },
    "action_types": {
        "must be a list of strings": ("workspace_create", [1], {"a": 1}),
        "has an empty item": ([""],),
        "has a comma in an item": (["a,b"],),
        "has white space at the start or end": (["a", " b"], ["a "]),
        "has a control character in an item": (["a\nb"], ["\ud800"]),
    },
    "exclude_action_types": {
        "must be a list of strings": ("user_sign_in", [1]),
        "has an empty item": ([""],),
    },
    "page_size": {
        "is 5000: it must be 1 to 1000": (5000,),
        "must be a whole number, 1 to 1000": (1.5, True, "many", "\ud800", float("nan"), 1e300),
    },
    "request_timeout_seconds": {
        "is 0: it must be above 0, at most 3600": (0,),
        "above 0, at most 3600": (-3, 3601, 1e300, float("nan"), "soon"),
    },
    "details_format": {"must be object or string": ("text", 5)},
    "raw_event": {"must be true or false": ("true", 1)},
    "user_agent": {"is empty": (" ",), "printable ASCII on one line": ("a\r\nX-Other: b",)},
}  # fmt: skip


def lines_of(config: dict[str, Any]) -> list[str]:
    """The lines of the error about a configuration."""
    with pytest.raises(SettingsError) as raised:
        read_settings(config)
    return [line.removeprefix("AE-SETTINGS: ") for line in raised.value.lines]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        (name, value, problem)
        for name, problems in BAD.items()
        for problem, values in problems.items()
        for value in values
    ],
)
def test_the_error_about_a_bad_setting_names_it_and_the_problem(
    name: str, value: object, problem: str
) -> None:
    """The error is one line, and contains neither the token nor the words of a library."""
    (line,) = lines_of(GOOD | {name: value})
    assert line.startswith(f"{name} ")
    assert problem in line
    assert TOKEN not in line
    assert "12345" not in line
    assert "Expected" not in line


BOUNDS = {"minimum": -1, "maximum": 1, "exclusiveMinimum": 0}
"""The step from each bound to a value that is not accepted."""


def test_the_declared_settings_are_those_that_are_read() -> None:
    """`--about` shows the names, required settings, defaults and bounds that hold in a run."""
    assert {*SETTINGS_SCHEMA["properties"]} == {*Settings.__struct_fields__} - {"is_one_of_several"}
    assert {*SETTINGS_SCHEMA["required"], "organization_id", "access_token"} == set(GOOD)
    defaults = read_settings(GOOD)
    for name, declared in SETTINGS_SCHEMA["properties"].items():
        assert declared["title"]
        assert declared["description"]
        assert "{" not in declared["description"].replace('{"', "")
        assert getattr(defaults, name) == declared.get("default", getattr(defaults, name))
        for bound, step in BOUNDS.items():
            if bound in declared:
                at_bound = declared[bound]
                assert str(at_bound) in declared["description"]
                if bound != "exclusiveMinimum":
                    assert getattr(read_settings(GOOD | {name: at_bound}), name) == at_bound
                (line,) = lines_of(GOOD | {name: at_bound + step})
                assert str(at_bound) in line
    assert SETTINGS_SCHEMA["properties"]["access_token"]["secret"] is True


@pytest.mark.parametrize("value", [None, ""])
def test_null_and_an_empty_text_are_treated_as_unset(value: object) -> None:
    """Platforms send them for a field of a form that was left empty."""
    others = dict.fromkeys(SETTINGS_SCHEMA["properties"].keys() - GOOD.keys(), value)
    assert read_settings(GOOD | others) == read_settings(GOOD)


@pytest.mark.parametrize("number", [7, 7.0, Decimal(7), Decimal("7.0")])
def test_a_whole_number_may_have_any_type(number: float | Decimal) -> None:
    """A loader of JSON may make each number a float or a `Decimal`."""
    assert read_settings(GOOD | {"page_size": number}).page_size == 7


def test_each_bad_setting_has_its_own_line() -> None:
    """All problems are reported at once, and stdout is empty."""
    done = run({"base_url": "http://example.com", "page_size": 0, "concurrency": 99})
    assert done.exit_code == 1
    assert done.stdout == b""
    assert sorted(line.split()[1] for line in done.errors) == [
        "access_token", "base_url", "concurrency", "organization_id", "page_size",
    ]  # fmt: skip


def test_an_end_before_the_start_is_refused() -> None:
    """The two dates are compared as instants."""
    dates = {"start_date": "2026-01-01T01:00:00+01:00", "end_date": "2025-12-31T23:59:59.999Z"}
    (line,) = lines_of(GOOD | dates)
    assert line.startswith("end_date is before start_date")


def test_a_type_that_is_both_read_and_excluded_is_refused() -> None:
    """The error names it."""
    types = {"action_types": ["a", "b"], "exclude_action_types": ["c", "b"]}
    (line,) = lines_of(GOOD | types)
    assert line.startswith("action_types and exclude_action_types both have 'b':")


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


@pytest.mark.parametrize(
    ("item", "path", "problem"),
    [
        (5, "", "must be an object"),
        ({}, ".organization_id", "is missing"),
        ({"organization_id": "x"}, ".organization_id", "is not a UUID"),
        ({"organization_id": OTHER_ID, "name": "a"}, "", "has no setting 'name'"),
        ({"organization_id": OTHER_ID}, "", "has no access_token or access_token_file"),
        ({"organization_id": OTHER_ID, "access_token": "a b"}, ".access_token", "one word"),
        ({"organization_id": OTHER_ID, "access_token": "a", "access_token_file": __file__},
         ".access_token", "both set"),
        ({"organization_id": OTHER_ID, "access_token_file": "/nowhere"}, ".access_token_file",
         "cannot be read"),
        ({"organization_id": ORGANIZATION_ID.upper(), "access_token": "a"}, ".organization_id",
         "is in the list twice"),
    ],
)  # fmt: skip
def test_a_mistake_in_one_of_several_organizations_is_named(
    item: object, path: str, problem: str
) -> None:
    """The line names its place in the list. Those before it, which are good, are not named."""
    first = {"organization_id": ORGANIZATION_ID, "access_token": TOKEN}
    given = {"base_url": GOOD["base_url"], "organizations": [first, item]}
    (line,) = lines_of(given)
    assert line.startswith(f"organizations[1]{path} ")
    assert problem in line


@pytest.mark.parametrize("value", ["x", {}, []])
def test_organizations_must_be_a_list_with_an_item(value: object) -> None:
    """A run without an organization would read nothing and succeed."""
    (line,) = lines_of(GOOD | {"organization_id": None, "organizations": value})
    assert line.startswith("organizations must be a list of objects")


def test_mistakes_in_organizations_are_reported_with_the_others() -> None:
    """A mistake in the shared token is reported only once."""
    items = [{"organization_id": "x"}, {"organization_id": ORGANIZATION_ID}]
    wrong = GOOD | {"organization_id": None, "access_token": "a b", "organizations": items}
    assert {line.split()[0] for line in lines_of(wrong | {"page_size": 0})} == {
        "access_token",
        "page_size",
        "organizations[0].organization_id",
    }


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
    "2024-05-06T23:59:59.9999999Z",
    f"2024-05-06T23:59:59.{'9' * 40}8Z",
    "2024-05-07T00:00:00Z",
]


def test_a_date_alone_is_the_whole_day_in_utc(service: Service, sync: Sync) -> None:
    """The start is its midnight; the end holds every event of the day, at any precision."""
    service.add([an_event(id=time, at=time) for time in TIMES])
    done = sync(start_date=DAY, end_date=DAY).raise_for_exit_code()
    assert [record["occurredAt"] for record in done.records] == TIMES[1:4]
    assert service.requests[0].params["endTime"] == "2024-05-07T00:00:00Z"


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
    for problem in (
        "'flattening_enable' is not a setting: did you mean flattening_enabled?",
        "'pagesize' is not a setting: did you mean page_size?",
        "'start' is not a setting: did you mean start_date?",
        "'zzz' is not a setting, nor similar to one: remove it",
        "concurrency is 0: it must be 1 to 32",
        "batch_config has no setting 'encodings'",
        "flattening_max_depth is -1: it must be 0 or more",
        "AE-STREAM-MAPS: ",
    ):
        assert any(problem in line for line in done.errors), problem
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
    ("settings", "problem"),
    [
        ({"stream_maps": "x"}, "AE-SETTINGS: stream_maps must be an object"),
        ({"stream_maps": {"audit_events": {"retention_days": 90}}},
         "AE-SETTINGS: stream_maps has entries that are neither null nor an object of texts"),
        ({"stream_maps": {"audit_events": {"id": "("}}}, "AE-STREAM-MAPS: stream_maps or the"),
        ({"flattening_enabled": "x"}, "AE-SETTINGS: flattening_enabled must be true or false"),
        ({"flattening_max_depth": -1}, "AE-SETTINGS: flattening_max_depth is -1: it must be 0 or"),
        ({"flattening_enabled": True, "flattening_max_depth": "x"},
         "AE-SETTINGS: flattening_max_depth must be a whole number"),
        ({"flattening_enabled": True}, "AE-SETTINGS: flattening_max_depth is missing"),
    ],
)  # fmt: skip
def test_bad_settings_of_the_sdk_are_refused_too(settings: dict[str, Any], problem: str) -> None:
    """Settings of stream maps and flattening are checked like the others."""
    assert only_error(run(GOOD | settings)).startswith(problem)
