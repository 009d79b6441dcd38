"""Loads events in a case, and finds out what happened to them."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tap_audit_events.sandbox import Service, serve
from tests.loaders import hostile
from tests.loaders.cases import Case
from tests.loaders.comparison import REFUSED, Changes, changes, exact
from tests.loaders.loader import Event, Loader
from tests.loaders.pipeline import Loaded, load, load_and_kill, tap_command
from tests.running import run, settings_for

RAW_EVENT = "raw_event"
SMALL_BATCHES = {"batch_size_rows": 10}


@dataclass
class Trial:
    """A case with a service and a loader of its own."""

    case: Case
    folder: Path
    service: Service
    base_url: str
    loader: Loader

    @classmethod
    def start(cls, case: Case, folder: Path, stack: ExitStack) -> "Trial":
        """Start a service without events; it stops when the stack is closed."""
        folder.mkdir(parents=True)
        service = Service()
        server = stack.enter_context(serve(service))
        return cls(case, folder, service, server.base_url, case.loader(folder, case.settings))

    def load(self, state: Any = None, **settings: Any) -> Loaded:
        """Run the tap into the loader."""
        given = settings_for(self.service, self.base_url, **settings)
        tap = tap_command(self.folder, given | self.case.tap_settings(self.folder), state)
        commands = [tap, *self.case.between(self.folder), self.loader.command()]
        return load(commands, self.folder, self.loader.environment())

    def load_half_and_kill(self, **settings: Any) -> Any:
        """Kill the loader when it has read half of the messages; return its last state."""
        given = settings_for(self.service, self.base_url, **settings)
        done = run(given | self.case.tap_settings(self.folder)).raise_for_exit_code()
        lines = done.stdout.splitlines(keepends=True)
        half = b"".join(lines[: len(lines) // 2])
        self.loader.settings |= SMALL_BATCHES
        return load_and_kill(self.loader.command(), self.folder, self.loader.environment(), half)

    def events_per_second(self) -> float:
        """Load the service's events from a file, without the time that the loader needs to start.

        Raises:
            AssertionError: a run failed.
        """
        given = settings_for(self.service, self.base_url)
        settings = given | self.case.tap_settings(self.folder)
        messages, schema = self.folder / "messages", self.folder / "schema"
        messages.write_bytes(run(settings).raise_for_exit_code().stdout)
        schema.write_bytes(messages.read_bytes().splitlines(keepends=True)[0])
        start_up, whole = (self._seconds(file) for file in (schema, messages))
        return self.service.event_count / (whole - start_up)

    def _seconds(self, messages: Path) -> float:
        """The time that the loader needs for the messages in a file."""
        commands = [*self.case.between(self.folder), self.loader.command()]
        started = time.perf_counter()
        load(commands, self.folder, self.loader.environment(), stdin=messages).check()
        return time.perf_counter() - started

    def delivered(self) -> dict[str, Event]:
        """The events by their id, as the tap delivers them in the plain shape."""
        done = run(settings_for(self.service, self.base_url)).raise_for_exit_code()
        lines = [line for line in done.stdout.splitlines() if line.startswith(b'{"type":"RECORD"')]
        return {event["id"]: event for event in (exact(line)["record"] for line in lines)}

    def stored(self) -> dict[str, Event]:
        """The stored events by their id: the raw event if there is one, with JSON text decoded."""
        rows = self.loader.rows()
        events = [_unwrapped(self.loader.event(row), self.case) for row in rows]
        return {event["id"]: event for event in events}


def _unwrapped(event: Event, case: Case) -> Event:
    if isinstance(event.get(RAW_EVENT), str):
        raw: Event = exact(event[RAW_EVENT])
        return raw
    action = event.get("action")
    if case.tap.get("details_format") == "string" and isinstance(action, dict):
        event["action"] = {**action, "details": exact(action["details"])}
    return event


def hostile_changes(
    case: Case, folder: Path, refused: Iterable[str]
) -> tuple[dict[str, Changes], dict[str, str]]:
    """The changes of each hostile event, without those of the plain one; and the columns.

    Args:
        case: the case.
        folder: a folder for it.
        refused: the events that are expected to end the loader with an error. They are loaded
            separately.
    """
    refused = set(refused)
    together = [name for name in hostile.NAMES if name not in refused]
    found, columns = _changes_of(case, folder / "together", together)
    for name in refused:
        found |= _changes_of(case, folder / str(hostile.NAMES.index(name)), [name])[0]
    plain = found[hostile.PLAIN]
    special = {
        name: {
            path: what
            for path, what in each.items()
            if what not in (plain.get(path), plain.get(path.partition(".")[0]))
        }
        for name, each in found.items()
        if name != hostile.PLAIN
    }
    kept = {name: each for name, each in {hostile.PLAIN: plain, **special}.items() if each}
    return kept, columns


def _changes_of(
    case: Case, folder: Path, names: list[str]
) -> tuple[dict[str, Changes], dict[str, str]]:
    with ExitStack() as stack:
        trial = Trial.start(case, folder, stack)
        trial.service.add_raw(hostile.texts(names))
        loaded = trial.load()
        assert loaded.tap_exit_code == 0 or loaded.loader_exit_code, loaded.log[-3000:]
        if loaded.loader_exit_code:
            assert len(names) == 1, f"one of {names}: {loaded.log[-600:]}"
            return {name: {"": REFUSED} for name in names}, {}
        delivered, stored = trial.delivered(), trial.stored()
        columns = trial.loader.columns()
    ids = {name: hostile.event_id(name) for name in names}
    found = {
        name: changes(_as_delivered(case, delivered[each]), stored.get(each, {}))
        for name, each in ids.items()
    }
    return found, columns


def _as_delivered(case: Case, event: Event) -> Event:
    """The event with what the mapper adds."""
    return {**event, "organization": "acme"} if case.is_mapped else event


@dataclass(frozen=True)
class Outcome:
    """How many events are missing or repeated after several runs.

    Attributes:
        missing: the number of events without a row.
        repeated: the number of rows beyond the first of an event.
    """

    missing: int
    repeated: int

    @classmethod
    def of(cls, expected: Iterable[Mapping[str, Any]], ids: Iterable[str]) -> "Outcome":
        wanted, found = {event["id"] for event in expected}, Counter(ids)
        return cls(len(wanted - found.keys()), sum(found.values()) - len(found))
