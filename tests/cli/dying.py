"""The command, killed at a step: just before the DIE_AT-th change of a name or flush to the disk."""

import itertools
import os
import signal
from collections.abc import Callable
from typing import Any

from tap_audit_events.cli.command import main

STEPS = ("fsync", "mkdir", "rename", "replace", "rmdir", "unlink")


def dies_at(step: int) -> None:
    """Kill this process before so many changes."""
    numbers = itertools.count(1)

    def dying(change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if next(numbers) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*args, **kwargs)

        return counted

    for name in STEPS:
        setattr(os, name, dying(getattr(os, name)))


if __name__ == "__main__":
    dies_at(int(os.environ["DIE_AT"]))
    raise SystemExit(main())
