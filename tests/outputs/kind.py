"""What the histories of outputs need to know about a kind of output.

`test_histories.py` runs each kind through the same histories. A new kind needs a subclass of `Kind`
of some twenty lines, and a row in `kinds.ROWS`. The subclass says

- the value of `--to`, as `to`, and further arguments, as `more`, if it needs any;
- what messages call it, as `name`, if that is not `to`;
- how to read the events back with a reader that is not the writer (`events`, `ocsf`);
- how its store becomes full (`full`), unless it is on a local disk, where a limit of the size of
  each file does it;
- what must not change if nothing is new (`snapshot`), if that is not in the folder of the test;
- what a run must not leave behind (`left_over`), if that is something else than hidden files;
- whether it `is_locked`: a second writer at the same time is refused at once. Otherwise the second
  one succeeds, and the first one finds that out when it commits.

`from_request` creates it. It can start a server by a fixture (``request.getfixturevalue``), and
give the command another interpreter, variables and secrets (``dataclasses.replace``). The row has
the mark of the job that installs what the kind needs. `tests.forking` imports the kind's modules,
which makes runs quick. If the kind commits parts of `Output.PART_EVENTS`, these are small when runs
are killed, so that each run commits many.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import pytest

from tests.cli.command import Command, Done
from tests.cli.exported import Event


class Kind(abc.ABC):
    """A new output of one kind.

    Attributes:
        command: runs `audit-events`, with all that this kind needs.
        to: the value of `--to`.
        more: further arguments.
        is_locked: whether a second writer is refused at once.
    """

    to: str
    more: tuple[str, ...] = ()
    is_locked: ClassVar[bool] = True

    def __init__(self, command: Command) -> None:
        self.command = command

    @classmethod
    def from_request(cls, request: pytest.FixtureRequest, command: Command) -> Kind:
        del request
        return cls(command)

    @property
    def name(self) -> str:
        return self.to

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("export", "--to", self.to, *self.more)

    @abc.abstractmethod
    def events(self) -> list[Event]:
        """The events in their order; none if the output does not exist. See `exported.expected`."""

    @abc.abstractmethod
    def ocsf(self) -> list[str]:
        """The events of an export as OCSF, as JSON texts in any order."""

    def snapshot(self) -> Any:
        """Everything that a run may not change if there is nothing new."""
        return {
            str(path): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in self.command.folder.rglob("*")
            if path.is_file()
        }

    @property
    def left_over(self) -> list[str]:
        """What an interrupted run has left behind."""
        return self.command.left_over

    @contextmanager
    def full(self) -> Iterator[Callable[[], Done]]:
        """Within the block, the store has no room. Yields the function that exports."""
        sizes = [path.stat().st_size for path in self.command.folder.rglob("*.duckdb")]
        limit = f'ulimit -f {max(sizes, default=0) // 1024 + 8} && exec "$@"'
        yield partial(self.command.under, ["bash", "-c", limit, "bash"], *self.arguments)

    def export(self, *more: str, **environment: str) -> Done:
        return self.command(*self.arguments, *more, **environment)

    def ids(self) -> list[str]:
        return sorted(event["id"] for event in self.events())
