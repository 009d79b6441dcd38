"""The peak memory of a process together with the processes that it starts."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

_SECONDS: Final = 0.02
_PEAK: Final = "VmHWM:"


class PeakMemory:
    """Watches a process tree while its ``with`` block runs, if the system has ``/proc``.

    Args:
        process_id: the process at the root of the tree.
    """

    def __init__(self, process_id: int) -> None:
        self._root = process_id
        self._peaks: dict[int, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    @property
    def mib(self) -> float:
        """The sum of the peaks of the processes, which may be at different times.

        Memory that processes share counts for each of them.
        """
        return sum(self._peaks.values()) / 1024

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_SECONDS):
            with suppress(OSError, ValueError):  # a process that has ended has no files
                for process_id in _tree(self._root):
                    self._peaks[process_id] = _peak_kib(process_id)


def _tree(process_id: int) -> Iterator[int]:
    yield process_id
    for children in Path(f"/proc/{process_id}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from _tree(int(child))


def _peak_kib(process_id: int) -> int:
    """Return the largest resident set of a process so far.

    Raises:
        ValueError: it has ended.
    """
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith(_PEAK):
            return int(line.split()[1])
    raise ValueError(process_id)
