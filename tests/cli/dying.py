"""Runs the command, and kills it just before step number DIE_AT.

A step is a change of a name, a flush to the disk, or a call of a DuckDB connection.
"""

import itertools
import os
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import duckdb

from tap_audit_events.cli.command import main
from tap_audit_events.outputs import duckdb_files

STEPS = ("fsync", "mkdir", "rename", "replace", "rmdir", "unlink")


def dies_at(step: int) -> None:
    """Kill this process just before the step of this number."""
    numbers = itertools.count(1)

    def dying(change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if next(numbers) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*args, **kwargs)

        return counted

    for name in STEPS:
        setattr(os, name, dying(getattr(os, name)))
    vars(duckdb_files)["duckdb"] = SimpleNamespace(
        connect=lambda *args, **kwargs: _Connection(duckdb.connect(*args, **kwargs), dying),
        IOException=duckdb.IOException,
    )


class _Connection:
    """A connection to DuckDB; each call of it, except `begin`, is a step."""

    def __init__(self, connection: Any, dying: Callable[..., Any]) -> None:
        self._connection = connection
        self._dying = dying

    def begin(self) -> "_Connection":
        self._connection.begin()
        return self

    def __getattr__(self, name: str) -> Any:
        return self._dying(getattr(self._connection, name))


if __name__ == "__main__":
    dies_at(int(os.environ["DIE_AT"]))
    raise SystemExit(main())
