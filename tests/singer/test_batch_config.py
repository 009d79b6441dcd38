"""The setting `batch_config`: valid values, and folders that cannot be written."""

import re
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Service
from tests.conftest import Sync
from tests.singer.test_batches import a_batch_config, events, ids


def test_a_folder_that_cannot_be_written_is_an_error_before_any_request(
    service: Service, sync: Sync, tmp_path: Path
) -> None:
    """The error has a code, the path and the reason."""
    (tmp_path / "file").touch()
    run = sync(batch_config=a_batch_config(tmp_path / "file" / "below"))
    assert run.exit_code == 1
    (error,) = run.errors
    assert error.startswith("AE-BATCH-FILE: A batch file cannot be written")
    assert f"{tmp_path}/file/below" in error
    assert service.requests == []


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "batch_config.encoding is missing: set it to an object"),
        ({"encoding": {"format": "parquet"}}, "batch_config.encoding.format must be jsonl"),
        ({"storage": {"root": "s3://"}}, "batch_config.storage.root must be a folder"),
        ({"storage": {"rot": "/tmp"}}, "batch_config.storage has no setting 'rot'"),  # noqa: S108
        ({"batch_size": 0}, "batch_config.batch_size is 0: it must be 1 to 1000000"),
        ({"size": 3}, "batch_config has no setting 'size'"),
    ],
    ids=str,
)
def test_a_wrong_batch_config_is_an_error_that_names_the_setting(
    service: Service, sync: Sync, tmp_path: Path, config: Any, problem: str
) -> None:
    """The error is found before any request."""
    given = a_batch_config(tmp_path) | config if config else config
    run = sync(batch_config=given)
    assert run.exit_code == 1
    assert problem in "\n".join(run.errors)
    assert service.requests == []


def test_a_plain_path_is_a_folder_too(service: Service, sync: Sync, tmp_path: Path) -> None:
    """Spaces and letters beyond ASCII are kept in the URL: targets of the SDK do not decode it."""
    folder = tmp_path / "with space, é"
    service.add(events(1))
    storage = {"root": str(folder)}
    run = sync(batch_config=a_batch_config(tmp_path, storage=storage)).raise_for_exit_code()
    (message,) = (m for m in run.messages if m["type"] == "BATCH")
    (url,) = message["manifest"]
    assert url.startswith(f"file://{folder}/tap-audit-events-")
    assert ids(run) == ["0"]


def test_a_new_folder_is_open_to_its_user_only(
    service: Service, sync: Sync, tmp_path: Path
) -> None:
    """Events contain personal data; the mode of a folder that exists already does not change."""
    service.add(events(1))
    sync(batch_config=a_batch_config(tmp_path / "new" / "folder")).raise_for_exit_code()
    assert (tmp_path / "new" / "folder").stat().st_mode & 0o777 == 0o700
    (tmp_path / "old").mkdir(mode=0o755)
    sync(batch_config=a_batch_config(tmp_path / "old")).raise_for_exit_code()
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o755


def test_the_token_is_not_a_part_of_a_file_name(
    service: Service, sync: Sync, settings: dict[str, Any], tmp_path: Path
) -> None:
    """A mistake in the settings does not write the token to the disk."""
    storage = {"root": str(tmp_path), "prefix": settings["access_token"].upper()}
    run = sync(batch_config=a_batch_config(tmp_path, storage=storage))
    assert run.exit_code == 1
    assert "batch_config.storage contains the access token" in "\n".join(run.errors)
    assert list(tmp_path.iterdir()) == []
    assert service.requests == []


def test_a_file_system_whose_package_is_missing_is_an_error(
    service: Service, sync: Sync, tmp_path: Path
) -> None:
    """The error names the package."""
    storage = {"root": "s3://bucket/folder"}
    (error,) = sync(batch_config=a_batch_config(tmp_path, storage=storage)).errors
    assert error.startswith("AE-BATCH-FILE: ")
    assert "Install s3fs" in error
    assert service.requests == []


def test_a_password_in_the_url_is_not_shown(sync: Sync) -> None:
    """The error contains the URL, with the password masked."""
    root = "ftp://user:SeCr3tPw@127.0.0.1:1/x"
    done = sync(batch_config={"encoding": {"format": "jsonl"}, "storage": {"root": root}})
    assert done.errors[0].startswith("AE-BATCH-FILE: ")
    assert "SeCr3tPw" not in done.log


@pytest.mark.parametrize("password", ["SeCr3t/Pw", "?SeCr3tPw"])
def test_a_password_whose_end_is_not_certain_is_an_error(password: str, sync: Sync) -> None:
    """The error does not show the URL, as a part of the password might not be masked."""
    root = f"ftp://user:{password}@127.0.0.1:1/x"
    done = sync(batch_config={"encoding": {"format": "jsonl"}, "storage": {"root": root}})
    (error,) = done.errors
    assert error.startswith("AE-SETTINGS: batch_config.storage.root is not a usable URL: ")
    assert not re.search("SeCr3t|Pw", done.log)
