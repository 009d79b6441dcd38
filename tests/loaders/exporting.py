"""Runs exports with the arguments of this program, in small parts, each killed after some time.

Each line of stdin is a number of seconds, and each line of stdout the exit code of such a run. The
runs are forks of this process, which saves the time of their imports.
"""

import os
import select
import signal
import sys

from tap_audit_events.cli.__main__ import main
from tap_audit_events.outputs import postgres_table

PART_EVENTS = 10


def run_and_kill(seconds: float) -> int:
    """The exit code of a run, which is negative if it was killed."""
    ends, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ends)
        os._exit(main())
    os.close(held)
    select.select([ends], [], [], seconds)  # readable when the run has ended
    os.kill(pid, signal.SIGKILL)
    os.close(ends)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    postgres_table.PART_EVENTS = PART_EVENTS  # type: ignore[misc]
    for line in sys.stdin:
        print(run_and_kill(float(line)), flush=True)  # noqa: T201 - for the test
