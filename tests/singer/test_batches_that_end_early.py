"""Batch files of a run that is stopped or killed, whose disk is full, or whose target has ended."""

import fcntl
import json
import signal
from pathlib import Path
from typing import Any

from tap_audit_events.sandbox import Fault, Service
from tests.builders import an_event
from tests.conftest import Sync
from tests.running import Run, run
from tests.singer.test_batches import a_batch_config, files_of, ids, types
from tests.singer.test_stopping import Start, finished, start

__all__ = ["start"]

EVENTS = [
    an_event(id=f"{n:04}", at=f"2024-05-06T07:{n // 60:02}:{n % 60:02}Z") for n in range(3000)
]
IDS = [event["id"] for event in EVENTS]
WAITS = Fault(
    kind="hang", seconds=300, when="10", only=lambda seen: seen.params["pageSize"] == "100"
)


def named_files(done: Run) -> set[Path]:
    batches = [message for message in done.messages if message["type"] == "BATCH"]
    return {path for message in batches for path in files_of(message)}


def up_to_last_state(done: Run) -> Run:
    """The output up to the last STATE, which a target acknowledges; the last line may be cut."""
    lines = done.stdout.splitlines(keepends=True)
    while lines and not (lines[-1].endswith(b"\n") and json.loads(lines[-1])["type"] == "STATE"):
        lines.pop()
    return Run(b"".join(lines), done.log, done.exit_code)


def ended_by(
    signal_number: signal.Signals, service: Service, start: Start, config: dict[str, Any]
) -> Run:
    """A run that receives a signal after its first batch files."""
    service.add(EVENTS)
    service.add_faults([WAITS])
    tap = start(page_size=100, concurrency=1, batch_config=config)
    assert tap.stdout is not None
    first = b"".join(tap.stdout.readline() for _ in range(6))
    tap.send_signal(signal_number)
    return finished(tap, first)


def test_a_run_that_is_stopped_delivers_what_it_has_read(
    service: Service, sync: Sync, start: Start, tmp_path: Path
) -> None:
    """STATE is last, a BATCH message names each file, and the next run delivers the rest."""
    folder = tmp_path / "batches"
    config = a_batch_config(folder, batch_size=250)
    stopped = ended_by(signal.SIGTERM, service, start, config)
    assert stopped.exit_code == 128 + signal.SIGTERM
    assert types(stopped)[-2:] == ["BATCH", "STATE"]
    assert {*folder.iterdir()} == named_files(stopped)
    rest = sync(state=stopped.state, batch_config=config).raise_for_exit_code()
    assert ids(stopped) + ids(rest) == IDS


def test_a_run_that_is_killed_leaves_at_most_unreferenced_files(
    service: Service, sync: Sync, start: Start, tmp_path: Path
) -> None:
    """The acknowledged events and those of the next run are all events, each once."""
    folder = tmp_path / "batches"
    config = a_batch_config(folder, batch_size=250)
    killed = up_to_last_state(ended_by(signal.SIGKILL, service, start, config))
    assert len({*folder.iterdir()} - named_files(killed)) <= 1
    rest = sync(state=killed.state, batch_config=config).raise_for_exit_code()
    assert ids(killed) + ids(rest) == IDS


def test_a_full_disk_is_an_error_and_leaves_no_incomplete_file(
    service: Service, settings: dict[str, Any], sync: Sync, tmp_path: Path
) -> None:
    """A BATCH message names each file that is left; with room, the next run delivers the rest."""
    service.add(EVENTS)
    folder = tmp_path / "batches"
    encoding = {"format": "jsonl", "compression": "none"}
    config = a_batch_config(folder, encoding=encoding, batch_size=2000)
    config["storage"] = {"root": str(folder)}
    limited = ["sh", "-c", 'ulimit -f 1000 && exec "$@"', "sh"]  # 512 or 1024 bytes each
    small = {"batch_config": config | {"batch_size": 500}, "end_date": "2024-05-06T07:05:00Z"}
    first = run(settings | small)
    failed = run(settings | {"batch_config": config}, state=first.state, under=limited)
    assert failed.exit_code == 1
    (error,) = failed.errors
    assert error.startswith("AE-BATCH-FILE: A batch file cannot be written")
    assert "File too large" in error
    assert {*folder.iterdir()} == named_files(first) | named_files(failed)
    rest = sync(state=first.state, batch_config=config).raise_for_exit_code()
    assert ids(first) + ids(rest) == IDS


def test_files_that_a_target_did_not_load_before_it_ended_are_named(
    service: Service, start: Start, tmp_path: Path
) -> None:
    """The run ends with AE-TARGET, and its log says where the files are."""
    service.add(EVENTS)
    folder = tmp_path / "batches"
    tap = start(page_size=10, batch_config=a_batch_config(folder, batch_size=10))
    assert tap.stdout is not None
    assert any(b'"BATCH"' in line for line in iter(tap.stdout.readline, b""))
    tap.stdout.close()
    assert tap.stderr is not None
    log = tap.stderr.read().decode()
    assert tap.wait(timeout=60) == 1
    assert "AE-TARGET" in log
    assert f"batch files written: 'file://{folder}/audit-tap-audit-events-" in log


def test_the_pipe_to_the_target_is_small(service: Service, start: Start, tmp_path: Path) -> None:
    """Otherwise many files would wait for a slow target, as their messages are short."""
    service.add(EVENTS)
    folder = tmp_path / "batches"
    tap = start(page_size=10, batch_config=a_batch_config(folder, batch_size=10))
    assert tap.stdout is not None
    first = tap.stdout.readline() + tap.stdout.readline()
    assert fcntl.fcntl(tap.stdout, fcntl.F_GETPIPE_SZ) == 4096
    done = finished(tap, first)
    assert ids(done) == IDS
