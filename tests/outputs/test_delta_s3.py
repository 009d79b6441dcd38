"""An export into a Delta table in a bucket: each event once, as nothing can be renamed there."""

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import pytest

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.cli.command import Command
from tests.cli.exported import HOSTILE, Event, expected, history
from tests.cli.failing import EVENTS, SMALL_PAGES, refused
from tests.forking import PipedTap, signal_until_gone
from tests.outputs.delta_log import files, in_delta
from tests.outputs.object_store import KEY_ID, SECRET, ObjectStore, object_store

KILLS, MAX_RUNS = 12, 100


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@dataclass(frozen=True)
class Place:
    """Where the table of a test is in the bucket."""

    store: ObjectStore
    folder: Path
    prefix: str = field(default_factory=lambda: f"audit/{uuid4().hex}")

    @property
    def to(self) -> str:
        return f"delta:s3://{self.store.bucket}/{self.prefix}"

    @property
    def keys(self) -> list[str]:
        return self.store.keys(self.prefix)

    def copy(self) -> Path:
        return self.store.download(self.prefix, self.folder / uuid4().hex)

    @property
    def events(self) -> list[Event]:
        return in_delta(self.copy())


@pytest.fixture
def place(store: ObjectStore, tmp_path: Path) -> Place:
    return Place(store, tmp_path)


@pytest.fixture
def command(command: Command, store: ObjectStore) -> Command:
    return replace(command, environment=store.environment)


def test_each_run_adds_what_is_new(place: Place, service: Service, command: Command) -> None:
    """A path with a slash at its end is the same table."""
    service.add(HOSTILE)
    command("export", "--to", place.to).raise_for_exit_code()
    assert place.events == expected(HOSTILE)
    before = place.keys

    done = command("export", "--to", f"{place.to}/").raise_for_exit_code()

    assert done.log.startswith(f"Nothing new for {place.to}/: ")
    assert place.keys == before
    late = an_event(id="late", at=HOSTILE[-1]["occurredAt"])
    service.add([late])
    command("export", "--to", f"{place.to}/").raise_for_exit_code()
    assert place.events == expected([*HOSTILE, late])


@pytest.mark.parametrize("old", [0, 20], ids=["a new table", "an old table"])
def test_of_two_runs_at_the_same_time_one_is_refused(
    old: int, place: Place, service: Service, command: Command
) -> None:
    """The store refuses the second write of the same commit."""
    if old:
        service.add(EVENTS[:old])
        command("export", "--to", place.to).raise_for_exit_code()
    service.add(EVENTS[old:])
    before = len(service.requests)
    service.add_faults([Fault.parse(f"status:code=429,retry-after=60@{before + 5}")])
    with command.started("export", "--to", place.to, **SMALL_PAGES) as first:
        assert b"Retry 1 of 8" in first.stderr.readline()

        command("export", "--to", place.to).raise_for_exit_code()

        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 1
        assert first.stderr.read().startswith(b"AE-BUSY: Another run is writing to ")
    assert place.events == expected(EVENTS)


def test_killed_at_any_moment_no_event_is_missing_or_twice(
    place: Place, service: Service, command: Command
) -> None:
    """Each run has new events. Killed runs may leave files that no commit names."""
    ends: Counter[int] = Counter()
    seconds, events = 0.0, history(40 * MAX_RUNS)
    for n in range(MAX_RUNS):
        service.add(events[40 * n : 40 * (n + 1)])
        begun = time.monotonic()
        with command.started("export", "-q", "--to", place.to, **SMALL_PAGES) as run:
            ends[_end_of(run, random.uniform(seconds / 2, seconds) or 60)] += 1
        seconds = seconds or time.monotonic() - begun
        if ends[-signal.SIGKILL] == KILLS:
            break
    command("export", "--to", place.to).raise_for_exit_code()

    assert ends.keys() == {0, -signal.SIGKILL}
    folder = place.copy()
    assert in_delta(folder) == expected(events[: 40 * ends.total()])
    unused = len(list(folder.rglob("*.parquet"))) - len(files(folder))
    print(f"{ends[-signal.SIGKILL]} kills, {unused} files that no commit names")  # noqa: T201


def _end_of(run: PipedTap, seconds: float) -> int:
    """The exit code of a run that is killed if it has not ended after so many seconds."""
    try:
        return run.wait(seconds)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGKILL)
        return run.wait(60)


def test_a_second_signal_ends_a_wait_for_the_store_at_once(
    place: Place, service: Service, command: Command
) -> None:
    """At the first one, the export writes what it has read. The library retries for minutes."""
    service.add(EVENTS)
    service.add_faults([Fault.parse("status:code=429,retry-after=60@5")])
    with command.started("export", "--to", place.to, **SMALL_PAGES) as run:
        assert b"Retry 1 of 8" in run.stderr.readline()
        with place.store.silent():
            assert signal_until_gone(run, signal.SIGTERM) == 128 + signal.SIGTERM


def test_errors_of_the_store_are_one_line_without_credentials(
    place: Place, service: Service, command: Command
) -> None:
    service.add(EVENTS)
    closed, missing = "http://127.0.0.1:1", f"delta:s3://{uuid4()}/a"
    unknown = {"AWS_METADATA_ENDPOINT": closed, "AWS_ENDPOINT_URL": place.store.url}

    with place.store.refusing():
        errors = [refused(command("export", "--to", place.to))]
    assert "check the credentials" in errors[-1]
    errors.append(refused(command("export", "--to", missing)))
    assert "create the bucket" in errors[-1]
    errors.append(refused(replace(command, environment=unknown)("export", "--to", place.to)))
    assert "set the credentials" in errors[-1]
    errors.append(refused(command("export", "--to", place.to, AWS_ENDPOINT_URL=closed)))
    assert "check the network" in errors[-1]

    assert not [error for error in errors if KEY_ID in error or SECRET in error or "\x1b" in error]
