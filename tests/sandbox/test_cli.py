"""The command `audit-events-sandbox`, which the tests run as a user does."""

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from tap_audit_events.sandbox.faults import OPTIONS, Fault

COMMAND = [sys.executable, "-m", "tap_audit_events.sandbox.cli"]

REQUEST = """
import json, os, requests
base_url, organization, token = (
    os.environ["TAP_AUDIT_EVENTS_" + name]
    for name in ("BASE_URL", "ORGANIZATION_ID", "ACCESS_TOKEN")
)
response = requests.get(
    f"{base_url}/v1/organizations/{organization}/audit_events",
    headers={"Authorization": f"Bearer {token}"},
)
print(json.dumps([response.status_code, response.json()]))
"""

WAIT_FOR_A_SIGNAL = """
import signal, sys
waited_for = [signal.SIGINT, signal.SIGTERM]
signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
print("ready", flush=True)
sys.exit(40 + signal.sigwait(waited_for))
"""


def sandbox(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a Python script while a sandbox of five events serves."""
    return sandbox("run", "--events=5", *options, "--", sys.executable, "-c", script)


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def read_lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_run_returns_the_exit_code_of_the_command(code: int) -> None:
    """It prints nothing of its own."""
    done = run(f"import sys; sys.exit({code})")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_run_sets_variables_with_which_the_command_reaches_the_sandbox() -> None:
    """Three variables hold the URL, the organization and the token of a valid request."""
    status, envelope = json.loads(run(REQUEST).stdout)
    assert status == 200
    assert len(envelope["auditEvents"]) == 5


def test_run_hides_variables_that_contradict_those_of_the_sandbox(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A user of the real service may have set them; variables of other settings are kept."""
    for name in ("ACCESS_TOKEN_FILE", "ORGANIZATIONS", "PAGE_SIZE"):
        monkeypatch.setenv(f"TAP_AUDIT_EVENTS_{name}", "5")
    script = "import os; print(*sorted(each for each in os.environ if each[:3] == 'TAP'))"

    of_one, of_several = run(script).stdout, run(script, "--organizations=2").stdout

    shared = {"ACCESS_TOKEN", "BASE_URL", "PAGE_SIZE"}
    for shown, own in ((of_one, "ORGANIZATION_ID"), (of_several, "ORGANIZATIONS")):
        assert set(shown.split()) == {f"TAP_AUDIT_EVENTS_{name}" for name in shared | {own}}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_passes_signals_on_to_the_command(number: signal.Signals) -> None:
    """The command handles the signal, and its exit code is returned."""
    arguments = ("run", "--events=5", "--", sys.executable, "-c", WAIT_FOR_A_SIGNAL)
    with started(*arguments) as process:
        assert read_lines(process, 1) == ["ready"]
        process.send_signal(number)
        assert process.wait(timeout=60) == 40 + number


@pytest.mark.parametrize("command", ["run", "serve"])
def test_every_fault_in_the_help_can_be_used(command: str) -> None:
    """Each example in the help is valid, and each kind of fault has one."""
    examples = re.findall(r"^ {2,}(\S+@\S+)", sandbox(command, "--help").stdout, re.MULTILINE)
    assert {Fault.parse(example).kind for example in examples} == set(OPTIONS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_prints_its_url_and_stops_on_a_signal(number: signal.Signals) -> None:
    """It prints four lines that a client needs, and its exit code is 0."""
    with started("serve", "--events=7") as process:
        lines = dict(line.split(": ", 1) for line in read_lines(process, 4))
        response = requests.get(
            f"{lines['base_url']}/v1/organizations/{lines['organization_id']}/audit_events",
            headers={"Authorization": f"Bearer {lines['access_token']}"},
            timeout=60,
        )
        assert len(response.json()["auditEvents"]) == int(lines["events"]) == 7
        process.send_signal(number)
        assert process.wait(timeout=60) == 0


def test_the_same_seed_and_end_give_the_same_events() -> None:
    """Two processes generate the same events."""
    options = ("--seed=3", "--until=2024-05-31T12:00:00+02:00", "--days=2")
    first, second = run(REQUEST, *options).stdout, run(REQUEST, *options).stdout
    assert first == second
    assert json.loads(first)[1]["auditEvents"][0]["occurredAt"] == "2024-05-31T09:59:59.999Z"


@pytest.mark.parametrize(
    "option",
    [
        "--fault=explode@1",
        "--until=2024-05-31",
        "--until=0001-01-01T00:00:00Z",
        "--until=9999-12-31T23:59:59-14:00",
        "--live=20000",
        "--rate-limit=inf",
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in ("--events=-1", "--days=0", "--late=5", "--late=6", "--live=-1")
        ),
    ],
)
def test_bad_options_are_refused(option: str) -> None:
    """The exit code is 2, the error names the option, and the command is not run."""
    done = run("print('has run')", option)
    assert (done.returncode, done.stdout) == (2, "")
    assert option.partition("=")[0] in done.stderr


REQUEST_EACH = """
import json, os, requests
base_url, organizations, token = (
    os.environ["TAP_AUDIT_EVENTS_" + name]
    for name in ("BASE_URL", "ORGANIZATIONS", "ACCESS_TOKEN")
)
found = []
for each in json.loads(organizations):
    response = requests.get(
        f"{base_url}/v1/organizations/{each['organization_id']}/audit_events",
        headers={"Authorization": f"Bearer {token}"},
    )
    events = response.json().get("auditEvents", [])
    scopes = {event["scope"]["organizationId"] for event in events}
    found.append([response.status_code, len(events), scopes <= {each["organization_id"]}])
print(json.dumps([found, "TAP_AUDIT_EVENTS_ORGANIZATION_ID" in os.environ]))
"""


def test_several_organizations_have_events_of_their_own() -> None:
    """Each has events of its own scope, and a fault concerns only the first organization."""
    done = run(REQUEST_EACH, "--organizations=3", "--fault=status:code=403@1")
    found, has_single = json.loads(done.stdout)
    assert found == [[403, 0, True], [200, 5, True], [200, 5, True]]
    assert not has_single


def test_several_organizations_share_the_rate_limit() -> None:
    """They share one token, and the service limits requests per owner of a token."""
    done = run(REQUEST_EACH, "--organizations=3", "--rate-limit=0.01")
    found, _ = json.loads(done.stdout)
    assert [status for status, _, _ in found] == [200, 429, 429]


def test_without_its_extra_it_names_a_command_that_adds_it() -> None:
    """The command is always installed, but the library that it needs is optional."""
    start = (
        "import sys; sys.modules['httptools'] = None\n"
        "from tap_audit_events.sandbox.cli import main\n"
        "main(['serve'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", start], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    error, _, command = done.stderr.rpartition(": ")
    assert error.startswith("Error: the sandbox needs httptools.")
    assert [word for word in shlex.split(command) if word.startswith("httptools>")]
