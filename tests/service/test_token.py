"""A token file is read at the start, and again if the service refuses the token."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.config.access_token import MAX_TOKEN_BYTES
from tap_audit_events.sandbox import Service
from tap_audit_events.service.client import MAX_NEW_TOKENS
from tests.builders import an_event
from tests.config.test_settings import GOOD, TOKEN
from tests.conftest import Sync
from tests.errors.test_errors import only_error
from tests.running import run

EVENTS = [an_event(id=f"{n:03}", at=f"2024-05-06T07:{n // 60:02}:{n % 60:02}Z") for n in range(300)]
IDS = [event["id"] for event in EVENTS]


@pytest.fixture
def token_file(service: Service, tmp_path: Path) -> Path:
    """A file with the service's token, for its owner alone."""
    path = tmp_path / "token"
    path.write_text(service.access_token + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def by_file(sync: Sync, token_file: Path) -> Sync:
    """Runs the tap with the token in the file."""

    def run_with(*arguments: str, **more: Any) -> Any:
        given = {"access_token": None, "access_token_file": str(token_file)} | more
        return sync(*arguments, **given)

    return run_with


def rotating(
    service: Service, monkeypatch: pytest.MonkeyPatch, rotate: Callable[[int], object]
) -> None:
    """Call `rotate` before each response, with the number of the request."""
    respond = service.respond

    def respond_after(*request: Any, **more: Any) -> Any:
        rotate(len(service.requests) + 1)
        return respond(*request, **more)

    monkeypatch.setattr(service, "respond", respond_after)


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_the_token_is_read_from_its_file(
    ending: str, service: Service, token_file: Path, by_file: Sync
) -> None:
    """A line break at the end is not part of the token; no warning is logged about the file."""
    token_file.write_bytes(b"\xef\xbb\xbf" + f"{service.access_token}{ending}".encode())
    service.add(EVENTS)
    done = by_file().raise_for_exit_code()
    assert done.ids == IDS
    assert done.warnings == []


def test_exactly_one_of_token_and_file_is_accepted(token_file: Path) -> None:
    """If both are set, the tap could only guess which one is meant."""
    both = GOOD | {"access_token_file": str(token_file)}
    assert only_error(run(both)) == (
        "AE-SETTINGS: access_token and access_token_file are both set: set only one of them"
    )
    neither = only_error(run(GOOD | {"access_token": None}))
    assert ", or access_token_file to the path of a file with the token" in neither


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty: write the token into it"),
        (b"\n", "is empty: write the token into it"),
        (f"{TOKEN} {TOKEN}".encode(), "must be one word of printable ASCII"),
        (f"{TOKEN}\n{TOKEN}\n".encode(), "must be one word of printable ASCII"),
        (f"{TOKEN}é".encode(), "must be one word of printable ASCII"),
        (TOKEN.encode() + b"\xff", "is not a text file"),
        (f"bearer {TOKEN}\n".encode(), "begins with 'Bearer'"),
        (f'"{TOKEN}"\n'.encode(), "has quotes around the token"),
        (b"x" * (MAX_TOKEN_BYTES + 1), "is larger than any token"),
    ],
)
def test_a_file_without_a_token_is_an_error_of_one_line(
    content: bytes, problem: str, token_file: Path, by_file: Sync
) -> None:
    """The line names the setting and the path, and shows nothing of the file's content."""
    token_file.write_bytes(content)
    done = by_file()
    line = only_error(done)
    assert line.startswith(f"AE-SETTINGS: access_token_file '{token_file}' {problem}")
    assert TOKEN not in done.log


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/nowhere/at/all", "'/nowhere/at/all' cannot be read: No such file or directory"),
        ("~/token", "'~/token' cannot be read: No such file or directory; ~ is not"),
        ("/", "'/' is not a regular file"),
        ("/dev/zero", "'/dev/zero' is not a regular file"),
        ("/x\nERROR | y\x00", r"'/x\nERROR | y\x00' is not a path: it contains a NUL character"),
        (" ", "is empty: set it to the path"),
        (5, "must be a string: the path"),
    ],
)
def test_a_path_that_does_not_name_a_file_is_an_error_of_one_line(
    path: object, problem: str
) -> None:
    """A value that is not a path is such an error too."""
    line = only_error(run(GOOD | {"access_token": None, "access_token_file": path}))
    assert line.startswith(f"AE-SETTINGS: access_token_file {problem}")


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o666])
def test_a_file_that_others_may_read_is_warned_about(
    mode: int, token_file: Path, by_file: Sync
) -> None:
    """The run continues: many platforms mount secrets this way."""
    token_file.chmod(mode)
    (warning,) = by_file().raise_for_exit_code().warnings
    assert warning == (
        f"Users other than its owner may read access_token_file '{token_file}': restrict it to the"
        " user that runs the tap (chmod 600)"
    )


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_run_continues_with_a_rotated_token(
    concurrency: int,
    service: Service,
    token_file: Path,
    by_file: Sync,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each event is delivered once, and a new token costs each request at most one refusal."""

    def rotate(request: int) -> None:
        if request in {5, 15}:
            service.access_token = f"acme_pat_rotated-{request}"
            token_file.write_text(service.access_token)

    rotating(service, monkeypatch, rotate)
    service.add(EVENTS)
    done = by_file(page_size=10, concurrency=concurrency, max_retries=0).raise_for_exit_code()
    assert done.ids == IDS
    refused = [request for request in service.requests if request.status == 401]
    assert 2 <= len(refused) <= 2 * concurrency
    assert done.log.count("access_token_file holds a new token") == 2
    assert "rotated" not in done.log + json.dumps(done.states)


@pytest.mark.parametrize("change", ["unchanged", "removed", "emptied"])
def test_a_refused_token_ends_the_run_if_the_file_has_no_other(
    change: str,
    service: Service,
    token_file: Path,
    by_file: Sync,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The request is not sent again; if the file cannot be used, the log says why."""

    def rotate(_: int) -> None:
        service.access_token = "acme_pat_other"
        if change == "removed":
            token_file.unlink()
        elif change == "emptied":
            token_file.write_text("")

    rotating(service, monkeypatch, rotate)
    done = by_file()
    assert only_error(done).startswith("AE-401: ")
    assert len(service.requests) == 1
    assert len(done.warnings) == (change != "unchanged")


def test_tokens_that_are_all_refused_end_the_run(
    service: Service, token_file: Path, by_file: Sync, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if the file contains another token each time."""
    rotating(service, monkeypatch, lambda request: token_file.write_text(f"acme_pat_new-{request}"))
    service.access_token = "acme_pat_never-given"
    done = by_file()
    assert only_error(done).startswith("AE-401: ")
    assert len(service.requests) == 1 + MAX_NEW_TOKENS
    assert "acme_pat_new" not in done.log
