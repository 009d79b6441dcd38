"""Whatever schemathesis asks it, the sandbox answers as openapi.yaml says."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Service, generate, serve

PROJECT = Path(__file__).resolve().parent.parent.parent
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
HOW = Path(__file__).with_name("schemathesis.toml")
"""How many requests, the same ones each time."""


def ask(service: Service, *options: str) -> "subprocess.CompletedProcess[str]":
    """Send the service valid and invalid requests; the exit code is 1 where an answer is wrong."""
    token = f"Authorization: Bearer {service.access_token}"
    with serve(service) as server:
        where = ["--url", server.base_url, "--header", token, "--no-color", *options]
        return subprocess.run(
            [SCHEMATHESIS, "--config-file", HOW, "run", PROJECT / "openapi.yaml", *where],
            check=False,
            env=os.environ | {"PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
        )


def test_the_sandbox_answers_as_the_document_says() -> None:
    """What it allows is answered with its page, what it forbids is refused with its error."""
    service = Service()
    service.add(generate(300, days=3, seed=1, until=datetime(2026, 1, 31, tzinfo=UTC)))

    done = ask(service)

    assert done.returncode == 0, done.stdout + done.stderr
    answered = [seen for seen in service.requests if seen.status == 200]
    assert len(answered) > 50
    assert any("cursor" in seen.params for seen in answered)
    assert {200, 400, 401, 405} <= {seen.status for seen in service.requests}


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("null-cursor@*", "ST108 Response violates schema"),
        ("status:code=418@*", "ST103 Undocumented status code"),
        ("status:code=400@*", "ST202 Schema-valid request rejected"),
        ("body:text=%7B%22auditEvents%22:[]%7D@*", "ST201 Schema-violating request accepted"),
    ],
)
def test_a_sandbox_that_answers_otherwise_is_found(fault: str, found: str) -> None:
    """So the test above can fail, each way it should."""
    done = ask(Service(faults=[fault]), "--phases=fuzzing", "--max-examples=20")

    assert done.returncode == 1
    assert found in done.stdout
