"""`audit-events verify` compares the service with the rows of real loaders."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pytest

from tests.builders import ORGANIZATION_ID, an_event
from tests.cli.command import Done
from tests.integrations.pipeline import NOON
from tests.loaders.cases import CASES
from tests.loaders.duckdb_file import TargetDuckdb
from tests.loaders.files import TargetJsonl
from tests.loaders.loader import Event
from tests.loaders.pipeline import load
from tests.loaders.postgres import PostgresLoader
from tests.loaders.proof import audit_events, peak_bytes
from tests.loaders.trial import Trial
from tests.running import settings_for

pytestmark = [pytest.mark.loaders, pytest.mark.usefixtures("servers")]

LOADERS = [
    "meltanolabs-target-postgres",
    "pipelinewise-target-postgres",
    "target-duckdb",
    "target-jsonl",
]
EVENTS = [
    *(an_event(id=f"{n:03}", at=f"2026-01-0{1 + n // 20}T08:{n % 60:02}:00Z") for n in range(60)),
    an_event(id="digits", at="2026-01-03T23:59:59.9999997Z"),
    an_event(id="milliseconds", at="2026-01-01T00:00:00.120Z"),
]
DAYS = ("--start", "2026-01-01T00:00:00Z", "--end", "2026-01-03T23:59:59.999999999Z")


@pytest.fixture(params=LOADERS)
def trial(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trial]:
    """A loader, and a service without events."""
    (case,) = (case for case in CASES if case.name == request.param)
    with ExitStack() as stack:
        yield Trial.start(case, tmp_path / "trial", stack)


def place_of(trial: Trial) -> tuple[str, str]:
    """The value of `--against`, and the password in it."""
    loader = trial.loader
    if isinstance(loader, PostgresLoader):
        server = loader.server
        url = f"postgresql://postgres:{server.password}@127.0.0.1:{server.port}/{loader.database}"
        return url, server.password
    if isinstance(loader, TargetDuckdb):
        return str(loader.file), ""
    assert isinstance(loader, TargetJsonl)
    return str(loader.place()["destination_path"]), ""


def verify(trial: Trial, *arguments: str, days: tuple[str, ...] = DAYS) -> Done:
    against, password = place_of(trial)
    given = ("verify", "--against", against, *days, *arguments)
    settings = settings_for(trial.service, trial.base_url)
    return audit_events(trial.folder, settings, *given, secret=password)


def delete(trial: Trial, event_id: str) -> None:
    """Delete an event from the rows of the loader."""
    sql = f"DELETE FROM audit_events WHERE id = '{event_id}'"  # noqa: S608 - our own id
    if isinstance(trial.loader, PostgresLoader):
        trial.loader.query(sql)
    elif isinstance(trial.loader, TargetDuckdb):
        with duckdb.connect(str(trial.loader.file)) as connection:
            connection.execute(sql)
    else:
        (file,) = Path(place_of(trial)[0]).glob("*.jsonl")
        kept = [line for line in file.read_text().splitlines() if f'"{event_id}"' not in line]
        file.write_text("".join(f"{line}\n" for line in kept))


def load_repair(trial: Trial, file: Path) -> None:
    """Load Singer messages with the same loader."""
    loader = trial.loader
    load([loader.command()], trial.folder, loader.environment(), stdin=file).check()


def load_others(trial: Trial, events: list[Event]) -> None:
    """Load events that the service does not have, as if it had lost them."""
    with ExitStack() as stack:
        other = Trial.start(trial.case, trial.folder / "other", stack)
        other.service.add(events)
        other.loader = trial.loader
        other.load().check()


def test_each_difference_is_found_and_missing_events_are_repaired(trial: Trial) -> None:
    """One event was deleted, one was added, and one became visible long after the lookback."""
    trial.service.add(EVENTS)
    state = trial.load(raw_event=False).check().state
    assert verify(trial).raise_for_exit_code().lines[-1].split() == [
        "total", "62", "62", "0", "0", "0",
    ]  # fmt: skip

    trial.service.add([an_event(id="late", at="2026-01-01T03:00:00Z")])
    trial.service.add([an_event(id="next", at="2026-01-03T12:00:00Z")])
    trial.load(state).check()
    delete(trial, "030")
    load_others(trial, [an_event(id="added", at="2026-01-02T09:00:00Z")])

    done = verify(trial, "--repair", "missing")
    assert done.exit_code == 1
    lists = done.stdout.decode().partition("\n\n")[2]
    assert "3 missing, 1 too many" in done.error
    assert all(f"  {each}  " in lists for each in ["030", "late", "next", "added"])

    load_repair(trial, trial.folder / "missing")
    delete(trial, "added")
    done = verify(trial, "--format", "json").raise_for_exit_code()
    assert sum(day["loaded"] for day in json.loads(done.stdout)) == len(EVENTS) + 2
    assert set(trial.loader.ids()) == {each["id"] for each in EVENTS} | {"late", "next"}


def test_a_wrong_password_is_reported_in_one_line_without_it(trial: Trial) -> None:
    if not isinstance(trial.loader, PostgresLoader):
        pytest.skip("it has no password")
    settings = settings_for(trial.service, trial.base_url)
    url, password = place_of(trial)

    for text in (password, f"{password}%21"):
        against = url.replace(password, f"wrong-{text}")
        arguments = ("verify", "--against", against)
        done = audit_events(trial.folder, settings, *arguments, secret=f"wrong-{text}")
        assert done.exit_code == 1
        assert done.error.startswith("AE-LOADED: ")
        assert "password authentication failed" in done.error


@pytest.mark.parametrize("table", ["audit_events", "50%s % of.them"])
def test_the_options_of_a_url_are_kept(table: str, trial: Trial) -> None:
    """The search path is such an option. A table may have any name."""
    if not isinstance(trial.loader, PostgresLoader):
        pytest.skip("it has no URL")
    schema, _, name = table.rpartition(".")
    schema = schema or "raw"
    trial.service.add(EVENTS)
    trial.loader.query(
        f'CREATE SCHEMA "{schema}"; CREATE TABLE "{schema}"."{name}"'
        " (id text, occurred_at timestamptz)"
    )
    for each in EVENTS:
        trial.loader.query(
            f'INSERT INTO "{schema}"."{name}" VALUES'  # noqa: S608 - our own names
            f" ('{each['id']}', '{each['occurredAt']}')"
        )
    url, password = place_of(trial)
    url += "?options=-csearch_path%3Draw%20-c%20timezone%3DAsia/Tokyo"
    settings = settings_for(trial.service, trial.base_url)

    arguments = ("verify", "--against", url, *DAYS, "--table", table)
    audit_events(trial.folder, settings, *arguments, secret=password).raise_for_exit_code()


@pytest.mark.parametrize(
    ("against", "says"),
    [
        ("postgresql://reader:S3cret/warehouse", "the port in the URL is not a number"),
        ("postgresql://reader:S3cret@127.0.0.1:x/w", "the port in the URL is not a number"),
        ("postgresql://reader:S3cret%@127.0.0.1/w", "the URL is not as libpq expects it"),
        ("POSTGRES://reader:S3cret@127.0.0.1:1/w?sslpassword=S3cret", "Connection refused"),
        ("Postgresql://127.0.0.1:1/w?password=S3cret&sslmode=S3cret", "invalid sslmode value"),
    ],
)
def test_no_part_of_a_url_shows_the_password(against: str, says: str, tmp_path: Path) -> None:
    """Neither do libpq's messages about a wrong URL. The scheme may have capital letters."""
    settings = {"organization_id": ORGANIZATION_ID, "base_url": "http://127.0.0.1:1"}

    done = audit_events(
        tmp_path,
        settings | {"access_token": "acme_pat_x"},
        *("verify", "--against", against),
        secret="S3cret",
    )

    assert done.exit_code == 1
    assert done.error.startswith("AE-LOADED: ")
    assert says in done.error


MILLION = 1_000_000
MAX_BYTES = 300 << 20


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("trial", ["target-duckdb", "pipelinewise-target-postgres"], indirect=True)
def test_a_day_of_a_million_events_is_verified_and_repaired(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory of the command is bounded."""
    monkeypatch.setattr("tests.loaders.pipeline.TIMEOUT_SECONDS", 1000)
    trial.service.add_generated(MILLION, 1, 1, NOON)
    trial.load().check()
    first = min(trial.loader.query("SELECT min(id) FROM audit_events"))  # type: ignore[attr-defined]
    delete(trial, first if isinstance(first, str) else first[0])

    done = verify(trial, "--repair", "missing", days=())
    assert done.exit_code == 1
    assert f"{MILLION:,}  {MILLION - 1:,}" in done.lines[-4]
    assert "1 missing. " in done.error
    assert peak_bytes(trial.folder) < MAX_BYTES

    load_repair(trial, trial.folder / "missing")
    verify(trial, days=()).raise_for_exit_code()
