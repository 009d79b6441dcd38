"""The sandbox responds to every request of schemathesis as openapi.yaml says."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tap_audit_events.sandbox import Service, generate, serve

PROJECT = Path(__file__).resolve().parent.parent.parent
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
"""It sets how many requests are sent, and that they are the same in each run."""


def fuzzed(service: Service, *options: str) -> "subprocess.CompletedProcess[str]":
    """Send valid and invalid requests to the service; the exit code is 1 if a response is wrong."""
    token = f"Authorization: Bearer {service.access_token}"
    with serve(service) as server:
        where = ["--url", server.base_url, "--header", token, "--no-color", *options]
        return subprocess.run(
            [SCHEMATHESIS, "--config-file", CONFIGURATION, "run", PROJECT / "openapi.yaml", *where],
            check=False,
            env=os.environ | {"PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
        )


@pytest.mark.long
def test_the_sandbox_responds_as_the_document_says() -> None:
    """A valid request gets a page, and an invalid one gets the documented error."""
    service = Service()
    service.add(generate(300, days=3, seed=1, until=datetime(2026, 1, 31, tzinfo=UTC)))

    done = fuzzed(service)

    assert done.returncode == 0, done.stdout + done.stderr
    pages = [request for request in service.requests if request.status == 200]
    assert len(pages) > 50
    assert {200, 400, 401, 405} <= {request.status for request in service.requests}
    assert any("cursor" in request.params for request in pages)
