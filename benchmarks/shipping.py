"""Events a second into a receiver that acknowledges at once; updates the table of `docs/siem.md`.

The ways into it are measured one after the other, from the start of all processes to their end.
"""

import re
import shlex
import statistics
import sys
from pathlib import Path
from typing import Final

from benchmarks.candidates import OWN, Candidate, Command, Job, words
from benchmarks.collector import Collector, start_collector
from benchmarks.measuring import FailedError, new_job, timed
from benchmarks.results import Run
from benchmarks.sandbox import Sandbox, start_sandbox
from tests.loaders.loader import environment_of

EVENTS: Final = 200_000
TARGET: Final = "target-elasticsearch"
PAGE: Final = Path(__file__).parents[1] / "docs" / "siem.md"


def _ship(to: str, collector: Collector, *more: str) -> Command:
    own = words(OWN / "audit-events", "ship", "--quiet", "--state", "s.json", "--to")
    url = to.format(f"http://127.0.0.1:{collector.port}")
    secret = ["env", "AUDIT_EVENTS_RECEIVER_SECRET=a-secret"]
    return lambda job: [*secret, *own, url, *more, *job.config()]


def _pipe(collector: Collector) -> Command:
    """The tap and the best Singer target for the same receiver."""

    def command(job: Job) -> list[str]:
        place = {"host": "127.0.0.1", "port": collector.port, "index_format": "audit-events"}
        tap = words(OWN / "tap-audit-events", *job.config())
        target = words(environment_of(TARGET) / TARGET, "--config", job.file("target.json", place))
        return ["bash", "-o", "pipefail", "-c", f"{shlex.join(tap)} | {shlex.join(target)}"]

    return command


def ways(collector: Collector) -> list[Candidate]:
    """The ways, the slowest last."""
    shipped = {
        "JSON Lines by HTTP": ["{}/ingest"],
        "Splunk, without acknowledgment": ["splunk-hec:{}"],
        "OpenSearch": ["opensearch:{}/audit-events"],
        "OpenSearch, `--no-gzip`": ["opensearch:{}/audit-events", "--no-gzip"],
    }
    own = [
        Candidate(f"`ship`, {name}", _ship(to, collector, *more), "", True)
        for name, (to, *more) in shipped.items()
    ]
    return [*own, Candidate(f"the tap into `{TARGET}`", _pipe(collector), "")]


def _run(way: Candidate, sandbox: Sandbox, collector: Collector) -> Run:
    with new_job(sandbox.settings) as job:
        run = timed(way, job)
    if (stored := collector.take()) != (sandbox.events, sandbox.events):
        raise FailedError(f"{way.label}: {stored} of {sandbox.events} events")
    return run


def main(repetitions: int) -> None:
    rows = [[f"{EVENTS:,} events", "s", "events/s", "MiB"], ["---", *["---:"] * 3]]
    with start_collector() as collector:
        with start_sandbox(1000, 0) as sandbox:  # then the files are compiled, and in the cache
            for way in ways(collector):
                _run(way, sandbox, collector)
        with start_sandbox(EVENTS, 0) as sandbox:
            for way in ways(collector):
                runs = [_run(way, sandbox, collector) for _ in range(repetitions)]
                seconds = statistics.median(run.seconds for run in runs)
                memory = max(run.peak_mib for run in runs)
                rate = f"{sandbox.events / seconds:,.0f}"
                rows.append([way.label, f"{seconds:.1f}", rate, f"{memory:,.0f}"])
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    pattern = r"(<!-- made: speed -->\n).*?(<!-- end -->)"
    text = re.sub(pattern, rf"\g<1>{table}\g<2>", PAGE.read_text(), count=1, flags=re.DOTALL)
    PAGE.write_text(text)
    sys.stdout.write(table)


if __name__ == "__main__":
    main(int(sys.argv[1]))
