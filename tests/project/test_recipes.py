"""Each recipe in `docs/recipes.md` works as it is written, with real targets."""

import hashlib
import hmac
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tap_audit_events.sandbox import Fault, Service, generate, serve
from tests.builders import ORGANIZATION_ID, an_event
from tests.integrations.pipeline import INSTALLED, NOON, PROJECT, check_installed
from tests.project.pages import sections, shell
from tests.running import settings_for

pytestmark = pytest.mark.meltano

RECIPES = sections("recipes.md")
MASK = shlex.quote(str(PROJECT / "examples" / "mask.py"))
KEY = "0123456789abcdef0123456789abcdef"
SPLIT = [
    "2025-12-31T23:59:59.999Z",
    "2025-12-31T23:59:59.999999999999999Z",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.000000001Z",
]
"""Times just before, at and just after the time at which the recipe splits the history."""


@dataclass(frozen=True)
class RecipeRunner:
    """Runs commands of the page in a folder with a configuration, against a service."""

    service: Service
    folder: Path
    environment: dict[str, str]

    def configure(self, **more: Any) -> None:
        config = json.loads((self.folder / "config.json").read_text())
        (self.folder / "config.json").write_text(json.dumps(config | more))

    def run(self, command: str) -> str:
        done = shell(command, self.folder, self.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def text(self) -> str:
        """Return all loaded lines; each run of target-jsonl writes a new file."""
        return "".join(path.read_text() for path in self.folder.glob("audit_events-*.jsonl"))

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]

    def ids(self) -> list[str]:
        return sorted(record["id"] for record in self.records())


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[RecipeRunner]:
    check_installed()
    service = Service()
    loaders = [INSTALLED / "loaders" / name / "venv" / "bin" for name in ("target-jsonl",)]
    path = [Path(sys.executable).parent, *loaders, os.environ["PATH"]]
    environment = os.environ | {"PATH": ":".join(map(str, path)), "AUDIT_EVENTS_MASK_KEY": KEY}
    with serve(service) as server:
        runner = RecipeRunner(service, tmp_path, environment)
        (tmp_path / "config.json").write_text(json.dumps(settings_for(service, server.base_url)))
        for section in RECIPES.values():
            section.write_files(tmp_path)
        yield runner
    assert service.violations == []


def ids(events: list[dict[str, Any]]) -> list[str]:
    return sorted(event["id"] for event in events)


# Backfill


def backfill_commands() -> list[str]:
    """Return the live run, the backfill, and the two commands that continue it.

    The backfill includes the command before it, which sets up the reader's shell.
    """
    section = RECIPES["Load old months while the live runs continue"]
    live, setup, backfill, *resume = section.commands
    assert len(resume) == 2
    return [live, f"set +o pipefail; {setup}; {backfill}", *resume]


def history() -> list[dict[str, Any]]:
    """Return events of two months, and some around the time at which the history is split."""
    return [
        *generate(300, days=60, seed=3, until=NOON.replace(hour=0)),
        *(an_event(id=at, at=at) for at in SPLIT),
    ]


def test_a_backfill_meets_the_live_runs_without_gap_or_repeat(runner: RecipeRunner) -> None:
    """Each event is loaded once, although the backfill is interrupted by an error."""
    live, backfill, *resume = backfill_commands()
    old, new = history(), generate(20, days=1, seed=4, until=NOON.replace(day=17))
    runner.configure(page_size=50)
    runner.service.add(old)
    runner.run(live)
    first = runner.ids()
    assert 0 < len(first) < len(old)

    third = str(len(runner.service.requests) + 3)
    runner.service.add_faults([Fault(kind="status", code=403, when=third)])
    interrupted = shell(backfill, runner.folder, runner.environment)
    assert interrupted.returncode == 1, interrupted.stderr
    assert len(first) < len(runner.ids()) < len(old), interrupted.stderr
    runner.service.add(new)
    (runner.folder / "state.json").write_text(
        (runner.folder / "live-states.jsonl").read_text().splitlines()[-1]
    )
    runner.run(live.replace(" |", " --state state.json |"))
    for command in resume * 2:
        runner.run(command)

    assert runner.ids() == ids(old + new)


# Widen


def test_the_events_of_added_types_are_loaded_without_repeats(runner: RecipeRunner) -> None:
    """One command adds two types, the other all types; no event of the first type is repeated."""
    added, others = RECIPES["Widen `action_types` without repeating anything"].commands
    first = "tap-audit-events --config config.json | target-jsonl > states.jsonl"
    events = generate(400, days=9, seed=5, until=NOON)
    runner.configure(action_types=["user_sign_in"])
    runner.service.add(events)
    runner.run(first)
    assert {record["action"]["type"] for record in runner.records()} == {"user_sign_in"}

    runner.run(added)
    wanted = {"user_sign_in", "channel_create", "file_download"}
    assert runner.ids() == ids([each for each in events if each["action"]["type"] in wanted])

    for path in runner.folder.glob("audit_events-*.jsonl"):
        path.unlink()
    runner.run(first)
    runner.run(others)
    assert runner.ids() == ids(events)


# Mask


def masked(address: str) -> str:
    return hmac.new(KEY.encode(), address.encode(), hashlib.sha256).hexdigest()


def test_masked_addresses_do_not_reach_the_target(runner: RecipeRunner) -> None:
    """The rest of each event is loaded unchanged, also numbers beyond 64 bits."""
    key, load, lookup = RECIPES["Mask e-mail and IP addresses"].commands
    shutil.copy(PROJECT / "examples" / "mask.py", runner.folder)
    (runner.folder / "mask-key").write_text(f"{KEY}\n")
    actor = {"type": "user", "id": "user-1", "name": "Zoë", "email": "Zoe@Example.com"}
    details = {"huge": 2**70, "text": "1.5"}
    runner.service.add(
        [
            an_event(id="1", actor=actor, action={"type": "a", "details": details}),
            an_event(id="2", actor={"type": "system", "id": "s"}, context={"requestIp": None}),
        ]
    )
    runner.environment.pop("AUDIT_EVENTS_MASK_KEY")
    runner.run(f"{key}; {load}")

    with_addresses, without = runner.records()
    text = runner.text()
    assert "example.com" not in text.lower()
    assert "192.0.2.1" not in text
    assert with_addresses == an_event(
        id="1",
        actor=actor | {"email": masked("zoe@example.com")},
        action={"type": "a", "details": details},
        context=an_event()["context"] | {"requestIp": masked("192.0.2.1")},
    )
    assert without["actor"] == {"type": "system", "id": "s"}
    assert without["context"] == {"requestIp": None}
    assert runner.run(f"{key}; {lookup}").split()[-1] == masked("zoe@example.com")


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        ('{"type":"BATCH","stream":"audit_events"}', KEY),
        ('{"type":"RECORD","stream":"audit_events","record":{"raw_event":"{}"}}', KEY),
        ('{"type":"SCHEMA","schema":{"properties":{"actor__email":{}}}}', KEY),
        ('{"type":"STATE","value":{}}', "short"),
    ],
)
def test_a_message_that_cannot_be_masked_ends_the_run(lines: str, key: str, tmp_path: Path) -> None:
    """No message is passed on, and the exit code is 1."""
    command = f"echo '{lines}' | python3 {MASK}"
    done = shell(command, tmp_path, os.environ | {"AUDIT_EVENTS_MASK_KEY": key})

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("mask.py: ")


# Columns


def test_the_recipe_leaves_out_context(runner: RecipeRunner) -> None:
    (command,) = RECIPES["Leave out `context`"].commands
    runner.service.add([an_event()])
    runner.run(command)

    left = {name: value for name, value in an_event().items() if name != "context"}
    assert runner.records() == [left]


def test_the_recipe_adds_columns_for_the_organization(runner: RecipeRunner) -> None:
    (command,) = RECIPES["A column for the organization"].commands
    runner.service.add([an_event()])
    runner.run(command)

    columns = {"organization_id": ORGANIZATION_ID, "organization": "acme"}
    assert runner.records() == [an_event() | columns]
