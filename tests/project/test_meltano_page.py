"""Each section of `docs/meltano.md` works in a new project, without Meltano's hub."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tap_audit_events.sandbox import Service, generate, serve
from tests.integrations.pipeline import (
    INSTALLED,
    NOON,
    PROJECT,
    Pipeline,
    check_installed,
    inherited,
)
from tests.project.pages import Section, sections, shell, unpacked_sdist
from tests.project.test_recipes import ids

pytestmark = [pytest.mark.meltano, pytest.mark.long, pytest.mark.timeout(1200)]

PAGE = sections("meltano.md")
PAGE_TEXT = (PROJECT / "docs" / "meltano.md").read_text()
URL = "https://api.example.com"
TOKEN = "acme_pat_..."
ORGANIZATIONS = re.findall(r"organization_id (\S+)", (PROJECT / "docs" / "meltano.md").read_text())
OLD = generate(60, days=40, seed=7, until=NOON)


@dataclass(frozen=True)
class PageRunner:
    """Follows the page in a project folder, against the service of a test."""

    pipeline: Pipeline
    done: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.pipeline.project

    def follow(self, section: Section, only: str = "") -> None:
        """Write the files of a section and run its commands that contain `only`, but no alerts."""
        url = self.pipeline.environment["URL"]
        for name, text in section.files.items():
            (self.folder / name).write_text(text.replace(TOKEN, self.pipeline.service.access_token))
        for command in section.commands:
            if only in command and command not in alerts().values():
                self.shell(command.replace(URL, url))

    def shell(self, command: str) -> str:
        done = shell(command, self.folder, self.pipeline.environment)
        assert done.returncode == 0, done.stderr + done.stdout
        assert self.pipeline.service.access_token not in done.stdout + done.stderr
        self.done.append(done.stdout + done.stderr)
        return done.stdout

    @property
    def extractors(self) -> list[dict[str, Any]]:
        project = yaml.safe_load((self.folder / "meltano.yml").read_text())
        found: list[dict[str, Any]] = project["plugins"]["extractors"]
        return found


def alerts() -> dict[str, str]:
    pattern = r"<!-- alert: (\w+) -->\n```console\n\$ (.*?)\n```"
    return dict(re.findall(pattern, PAGE["Alert on the log"].text, re.DOTALL))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of the sdist, which holds what a user clones."""
    repository = unpacked_sdist(tmp_path_factory.mktemp("published"))
    commit(repository, "init", "--quiet")
    commit(repository, "add", "--all", "--force")
    commit(repository, "commit", "--quiet", "--message", "first")
    return repository


def commit(repository: Path, *arguments: str) -> None:
    author = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com"]
    subprocess.run(["git", *author, *arguments], cwd=repository, check=True)


def environment(repository: Path) -> dict[str, str]:
    """Return variables in which versions are pinned."""
    pins = str(repository / "requirements" / "dev.txt")
    return inherited() | {"UV_CONSTRAINT": pins, "UV_BUILD_CONSTRAINT": pins}


@pytest.fixture(scope="module")
def added(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty project with a loader, to which the tap was added as the page says."""
    check_installed()
    project = tmp_path_factory.mktemp("projects") / "warehouse"
    variables = environment(repository)
    create = f"meltano init {project.name} --no-usage-stats"
    done = shell(create, project.parent, variables)
    assert done.returncode == 0, done.stderr
    loaders = yaml.safe_load((PROJECT / "meltano.yml").read_text())["plugins"]["loaders"]
    with (project / "meltano.yml").open("a") as file:
        yaml.safe_dump({"plugins": {"loaders": loaders}}, file, sort_keys=False)
    (project / ".meltano" / "loaders").symlink_to(INSTALLED / "loaders")
    clone = f"git clone --quiet {repository.as_uri()} tap-audit-events"
    done = shell(clone, project.parent, variables)
    assert done.returncode == 0, done.stderr
    for command in PAGE["Add the tap"].commands:
        done = shell(command, project, variables)
        assert done.returncode == 0, done.stderr + done.stdout
    return project


@pytest.fixture
def runner(added: Path, repository: Path, tmp_path: Path) -> Iterator[PageRunner]:
    """A copy of that project, configured for a service that runs."""
    project = tmp_path / "warehouse"
    shutil.copytree(added, project, symlinks=True)
    shutil.copytree(added.parent / "tap-audit-events", tmp_path / "tap-audit-events")
    service = Service(organization_id=ORGANIZATIONS[0])
    service.add(OLD)
    with serve(service) as server:
        variables = environment(repository) | {"URL": server.base_url}
        runner = PageRunner(Pipeline(service, project, variables))
        runner.follow(PAGE["Configure it"], only=" config set ")
        yield runner
    assert service.violations == []


def test_the_tap_is_added_and_configured(runner: PageRunner) -> None:
    """Meltano knows its settings and can test it. The token is in `.env` and is never shown."""
    runner.follow(PAGE["Configure it"])
    (extractor,) = runner.extractors
    assert extractor["pip_url"] == "../tap-audit-events"
    assert extractor["config"].keys() == {"base_url", "organization_id"}
    *_, listed, tested, told = runner.done
    assert "access_token" in listed
    assert "(redacted)" in listed
    assert "Plugin configuration is valid" in tested
    assert "The service accepts the access token" in told


def test_fields_are_chosen_and_loaded(runner: PageRunner) -> None:
    assert "] audit_events_coverage.digest" in runner.shell(
        "meltano select --list tap-audit-events"
    )

    runner.follow(PAGE["Choose fields"])
    assert "audit_events_coverage" not in runner.done[-1]
    assert "] audit_events.actor" in runner.done[-1]
    assert "] audit_events.context" not in runner.done[-1]

    runner.follow(PAGE["Load for the first time"])
    assert ids(runner.pipeline.lines()) == ids(OLD)
    assert not any("context" in record for record in runner.pipeline.lines())


def test_the_schedule_loads_and_the_alerts_read_its_log(runner: PageRunner) -> None:
    """They ring after a failed run, and if no event is new or no run has ended for two hours."""
    runner.follow(PAGE["Schedule it"])
    assert ids(runner.pipeline.lines()) == ids(OLD)
    assert ringing_alerts(runner) == ["silent"]
    assert "nothing new for " in shell(alerts()["silent"], runner.folder, os.environ).stdout

    log = (runner.folder / "last-run.log").read_text()
    fresh = re.sub(r'("lag_seconds", "value": )[0-9.]+', r"\g<1>60.5", log)
    (runner.folder / "last-run.log").write_text(fresh)
    assert ringing_alerts(runner) == []

    failed = runner.pipeline.execute(
        ["bash", "hourly.sh"], TAP_AUDIT_EVENTS_ACCESS_TOKEN="acme_pat_wrong"
    )
    assert failed.returncode == 1
    assert "failed" in ringing_alerts(runner)
    assert "AE-401: " in shell(alerts()["failed"], runner.folder, os.environ).stdout
    assert log in (runner.folder / "meltano.log").read_text()

    # As cron does it, without Meltano's folder on the path: nothing starts, and the alert says so.
    bare = {"PATH": "/usr/bin:/bin"}
    assert runner.pipeline.execute(["bash", "hourly.sh"], **bare).returncode == 127
    assert ringing_alerts(runner) == ["failed", "silent"]
    (line,) = re.findall(
        r"<!-- crontab -->\n```text\n[\d* ]+(PATH=\S+ bash) /\S+/(.*)\n", PAGE_TEXT
    )
    home = runner.folder / "home" / ".local" / "bin"
    home.mkdir(parents=True)
    (home / "meltano").symlink_to(str(shutil.which("meltano")))
    again = f"{line[0]} {line[1]}"
    assert (
        runner.pipeline.execute(["sh", "-c", again], **bare, HOME=str(home.parents[1])).returncode
        == 0
    )
    assert "failed" not in ringing_alerts(runner)
    (runner.folder / "last-run.log").write_text("")

    two_hours_ago = time.time() - 7200
    os.utime(runner.folder / "meltano.log", (two_hours_ago, two_hours_ago))
    assert ringing_alerts(runner) == ["silent", "hangs"]


def ringing_alerts(runner: PageRunner) -> list[str]:
    return [
        name
        for name, command in alerts().items()
        if shell(command, runner.folder, os.environ).returncode == 1
    ]


def test_old_events_are_loaded_after_the_newest(runner: PageRunner) -> None:
    """Each event is loaded once into a target that only appends."""
    runner.follow(PAGE["Bring old events later"])

    assert ids(runner.pipeline.lines()) == ids(OLD)
    assert "2025" in runner.shell("meltano state list")


def test_each_of_two_organizations_has_its_own_state(runner: PageRunner) -> None:
    acme = Service(organization_id=ORGANIZATIONS[1])
    theirs = generate(30, days=2, seed=9, until=NOON)
    acme.add(theirs)
    runner.follow(PAGE["Load for the first time"])
    with serve(acme) as server, ExitStack() as restored:
        variables = runner.pipeline.environment
        variables["TAP_AUDIT_EVENTS__ACME_BASE_URL"] = server.base_url
        restored.callback(variables.pop, "TAP_AUDIT_EVENTS__ACME_BASE_URL")
        runner.follow(PAGE["Several organizations"])

    assert acme.violations == []
    assert ids(runner.pipeline.lines()) == ids(OLD + theirs)
    assert runner.shell("meltano state list").split() == [
        "dev:tap-audit-events-to-target-jsonl",
        "dev:tap-audit-events--acme-to-target-jsonl",
    ]


def test_addresses_are_masked(runner: PageRunner) -> None:
    """The key is read from `.env`. Without a usable key the run fails and loads nothing."""
    section = PAGE["Mask e-mail and IP addresses"]
    runner.follow(section)
    loaded = runner.pipeline.lines()
    emails = [record["actor"].get("email") for record in loaded]
    assert ids(loaded) == ids(OLD)
    assert any(emails)
    assert all(re.fullmatch("[0-9a-f]{64}", email) for email in emails if email)

    runner.pipeline.service.add(generate(5, days=1, seed=8, until=NOON.replace(day=17)))
    command = section.commands[-1].split()
    failed = runner.pipeline.execute(command, AUDIT_EVENTS_MASK_KEY="short")
    assert failed.returncode == 1
    assert runner.pipeline.lines() == loaded


def test_a_state_is_shown_and_set(runner: PageRunner) -> None:
    """A run after the state was changed as the page shows repeats no event."""
    runner.follow(PAGE["Load for the first time"])
    runner.follow(PAGE["Look at the state and change it"])
    runner.follow(PAGE["Load for the first time"])

    assert ids(runner.pipeline.lines()) == ids(OLD)


def test_an_upgrade_keeps_configuration_selection_and_state(
    runner: PageRunner, repository: Path
) -> None:
    runner.follow(PAGE["Choose fields"])
    runner.follow(PAGE["Load for the first time"])
    (before,) = runner.extractors
    pyproject = repository / "pyproject.toml"
    pyproject.write_text(re.sub(r'\nversion = ".*"', '\nversion = "9.9.9"', pyproject.read_text()))
    definition = repository / "plugins" / "extractors" / "tap-audit-events.yml"
    definition.write_text(definition.read_text() + "- name: a_new_setting\n")
    commit(repository, "commit", "--quiet", "--all", "--message", "second")

    runner.follow(PAGE["Upgrade"])
    assert "v9.9.9" in runner.done[-1]
    (after,) = runner.extractors
    assert after["settings"][-1]["name"] == "a_new_setting"
    assert (after["config"], after["select"]) == (before["config"], before["select"])
    runner.follow(PAGE["Load for the first time"])
    assert ids(runner.pipeline.lines()) == ids(OLD)
