"""DuckDB files go from one version of DuckDB to another: here 1.x, in .tools/proof the newest."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from tap_audit_events.sandbox import Service
from tests.cli.command import Command
from tests.cli.exported import expected, exported, history
from tests.loaders.proof import audit_events

pytestmark = pytest.mark.loaders

OLD, NEW, NEWEST = history(50), history(50, start=50), history(50, start=100)


def test_a_file_of_the_newest_duckdb_is_read_and_continued_by_the_one_of_target_duckdb(
    service: Service, settings: dict[str, Any], tmp_path: Path
) -> None:
    """By default, DuckDB 2 gives new files a format that no 1.x opens."""
    assert duckdb.__version__ < "1.3"
    here = Command(tmp_path, settings)
    arguments = ("export", "--to", "events.duckdb", "--state", "s.json")
    service.add(OLD)
    audit_events(tmp_path, settings, *arguments).raise_for_exit_code()
    assert exported(tmp_path / "events.duckdb") == expected(OLD)

    service.add(NEW)
    here(*arguments).raise_for_exit_code()
    service.add(NEWEST)
    audit_events(tmp_path, settings, *arguments).raise_for_exit_code()

    assert exported(tmp_path / "events.duckdb") == expected([*OLD, *NEW, *NEWEST])
    verified = ("verify", "--against", "events.duckdb")
    here(*verified).raise_for_exit_code()
    audit_events(tmp_path, settings, *verified).raise_for_exit_code()
