"""The documents agree with the code and with real output."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.report import generator
from tap_audit_events.sandbox import Fault, Service, generate, serve
from tests.conftest import Sync
from tests.integrations.pipeline import INSTALLED, NOON, PROJECT
from tests.project.pages import Section
from tests.running import settings_for

README = (PROJECT / "README.md").read_text()
ERRORS = (PROJECT / "docs" / "errors.md").read_text()
LOADER = INSTALLED / "loaders" / "target-jsonl" / "venv" / "bin"
SANDBOX = (PROJECT / "docs" / "sandbox.md").read_text()
INSTALLS = ("uv tool ", "pipx ", "pip ")  # run by test_installing.py
LOADER_INSTALL = "python3 -m venv loader && loader/bin/pip install --quiet target-jsonl"


def shape(printed: str) -> list[str]:
    """Return the text without numbers, widths and the newest event, which differ between runs."""
    lines = [line for line in printed.splitlines() if "Newest event" not in line]
    return [
        re.sub(r"[─┬┴┼]+", "─", re.sub(r"\d[\d,:-]*", "#", re.sub(r" +", " ", line)))
        for line in lines
    ]


@pytest.mark.parametrize(
    ("page", "name"),
    [(page, name) for page, parts in generator().PARTS.items() for name in parts],
)
def test_the_generated_parts_are_up_to_date(page: str, name: str) -> None:
    """`make docs` was run after the last change to their contents."""
    module = generator()
    assert module.part((PROJECT / page).read_text(), name) == module.PARTS[page][name]()


def test_the_page_of_errors_finds_the_code_in_a_log(
    service: Service, sync: Sync, tmp_path: Path
) -> None:
    """The command of the page prints the line that ended the run as the last one."""
    service.add_faults([Fault(kind="status", code=503, retry_after="0")])
    done = sync(max_retries=1)
    (tmp_path / "tap.log").write_text(done.log)
    (command,) = re.findall(r"```console\n\$ (.+)\n```", ERRORS)
    found = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    retried, ended = found.stdout.splitlines()
    assert retried.startswith("AE-500: ")
    assert [ended] == done.errors


@pytest.mark.long
@pytest.mark.meltano
def test_the_demo_prints_what_the_page_shows() -> None:
    """The page shows real output of the demo, and the demo succeeds.

    The demo fails unless DuckDB holds exactly the service's events and its second run wrote only
    the new events.
    """
    demo = subprocess.run(
        [sys.executable, PROJECT / "demo" / "demo.py"], capture_output=True, text=True, check=True
    )
    module = generator()
    assert shape(module.demo_output(demo.stdout)) == shape(module.part(SANDBOX, "demo"))
    picture = (PROJECT / "demo" / "output" / "events.svg").read_text(encoding="utf-8")
    bars = re.findall(r"<title>\d{4}-\d\d-\d\d: ([\d,]+) ", picture)
    assert sum(int(count.replace(",", "")) for count in bars) == 20_137


@pytest.mark.meltano
def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    """They are run one after the other in one folder, as a reader would run them."""
    service = Service()
    service.add(generate(50, days=3, seed=1, until=NOON))
    with serve(service) as server:
        settings = settings_for(service, server.base_url)
        (tmp_path / "config.json").write_text(json.dumps(settings))
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        (tmp_path / "loader").mkdir()
        (tmp_path / "loader" / "bin").symlink_to(LOADER)
        shown = [line for line in Section(README).commands if not line.startswith(INSTALLS)]
        shown.remove(LOADER_INSTALL)
        assert len(shown) >= 3
        for command in shown:
            subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                check=True,
            )
    assert service.violations == []
    (loaded,) = tmp_path.glob("audit_events*.jsonl")
    for written in (loaded, tmp_path / "events.jsonl"):
        assert len(written.read_bytes().splitlines()) == 50


def test_no_page_installs_the_package_by_a_name_or_a_host_that_others_could_claim() -> None:
    """It is on no index, so `pip install` with its name would install what somebody put there."""
    named = re.compile(
        r"\b(?:install|inject) (?:\S+ )*'?tap-audit-events(?:\[|@| |'|$)", re.MULTILINE
    )
    for page in [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")]:
        for command in Section(page.read_text()).commands:
            assert "git+" not in command, page
            if not command.startswith("meltano "):
                assert not named.search(command), (page, command)


def test_links_between_the_documents_lead_to_existing_files() -> None:
    for page in [*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
