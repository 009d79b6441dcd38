"""Runs against a service that returns one event too late: is any event lost without an error?"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Final

from benchmarks import measuring
from benchmarks.candidates import CANDIDATES
from benchmarks.measuring import FailedError
from benchmarks.results import Content, DisplacedCase, DisplacedRun
from benchmarks.sandbox import Sandbox, start_sandbox
from benchmarks.shapes import OFFICE_HOURS

CANDIDATE: Final = "tap-8"
LATENCY_SECONDS: Final = 0.05
"""A latency at which windows are cut and eight requests are in flight."""

PAGES: Final = 60
PAGE_SIZES: Final = (50, 100, 200, 500)
PLACES: Final = range(100, 1000)
SHAPES: Final = (OFFICE_HOURS, "one burst", "even", "bursts of seconds", "ties")

AT_A_TIME: Final = 2
"""The number of parallel runs; they are not timed."""

_CODE: Final = re.compile(r"\| ERROR +\|.*?(AE-[A-Z0-9-]+): ")


def cases(count: int) -> Iterator[DisplacedCase]:
    """Return so many cases: every shape with every page size in turn, at random positions."""
    random = Random(count)
    pairs = zip(cycle(SHAPES), cycle(PAGE_SIZES), strict=False)  # 5 and 4: every pair occurs
    for shape, page_size in islice(pairs, count):
        event = random.randint(1, PAGES * page_size)
        yield DisplacedCase(shape, page_size, event, random.choice(PLACES))


def run_displaced(runs: int, until: datetime) -> list[DisplacedRun]:
    with ThreadPoolExecutor(AT_A_TIME) as executor:
        return list(executor.map(lambda case: _run(case, until), cases(runs)))


def _run(case: DisplacedCase, until: datetime) -> DisplacedRun:
    content = Content(PAGES * case.page_size, LATENCY_SECONDS, shape=case.shape)
    fault = f"displaced:places={case.places},event={case.event}@*"
    with start_sandbox(content, until, [fault]) as process:
        settings = Sandbox(process).settings | {"page_size": case.page_size}
        with measuring.new_job(settings) as job:
            log = job.folder / "log"
            with log.open("wb") as file:
                found, exit_code = measuring.attempted(CANDIDATES[CANDIDATE], job, file)
            error = _error_code(log) if exit_code else None
    missing = content.events - found.distinct
    return DisplacedRun(case, missing, found.records - found.distinct, error)


def _error_code(log: Path) -> str:
    """Return the code of the error in the log.

    Raises:
        FailedError: the log has no code.
    """
    text = log.read_text(errors="replace")
    code = _CODE.search(text)
    if code is None:
        raise FailedError(f"the tap failed without an error code\n{text[-4000:]}")
    return code[1]
