"""What can go wrong: the exceptions, and the table of what happened and what to do.

::

  AuditEventsError          one line for the person who runs the tap
  ├── SettingsError         mend a setting, or a config, catalog or state file
  ├── OutputError           look at the target: it no longer reads
  ├── StoppedError          a signal asked to stop; run again
  └── ServiceError          a case of the table below
      ├── RetryableError    wait and ask again; final when the retries are used up
      ├── RefusedError      mend the token, its owner's rights or the address
      │   └── CursorRefusedError    start the window again
      └── ContractError     the service answered outside of its interface
"""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

SHOWN_LENGTH: Final = 300
"""Characters of a text from outside that a message shows at most."""


class AuditEventsError(Exception):
    """An expected error: its text is one line that says what happened, where and what to do."""


class SettingsError(AuditEventsError):
    """Something the user gave is wrong; no request has been sent.

    ``lines`` holds one sentence for each thing to mend.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("; ".join(lines))
        self.lines = tuple(lines)


class OutputError(AuditEventsError):
    """What the tap writes cannot be written: the target no longer reads, or a disk is full.

    Args:
        reason: the system's words, None where the target has closed its end of the pipe.
    """

    def __init__(self, reason: str | None = None) -> None:
        happened = (
            "The target closed its input before the tap was done: look for the target's own error."
            if reason is None
            else f"The tap cannot write to stdout: {reason}."
        )
        super().__init__(
            f"{happened} The next run goes on from the last STATE that the target acknowledged."
        )


class StoppedError(AuditEventsError):
    """A signal asked the run to stop before it was done.

    Attributes:
        exit_code: 128 + the signal's number, as shells have it.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(
            f"Stopped by {signal.Signals(signal_number).name}: what was read so far is written and"
            " in STATE. The next run goes on there."
        )
        self.exit_code = 128 + signal_number


class ServiceError(AuditEventsError):
    """An answer of the service that ends the run, or no answer.

    Args:
        case: key of `CASES`.
        details: what the service said, already made safe with `shown`.

    Attributes:
        where: the request it is about, known to whoever sent it.
    """

    def __init__(self, case: str, *, details: str = "") -> None:
        super().__init__(case, details)
        self.case = case
        self.details = details
        self.where = ""

    @property
    def happened(self) -> str:
        """What happened and where, without the next step."""
        said = f" ({self.details})" if self.details else ""
        where = f", {self.where}" if self.where else ""
        return f"{CASES[self.case].happened}{said}{where}"

    def __str__(self) -> str:
        return f"{self.happened}. {CASES[self.case].next_step}"


class RetryableError(ServiceError):
    """May pass when asked again.

    Attributes:
        retry_after_seconds: what the service asked to wait at least, None where it did not say.
    """

    retry_after_seconds: float | None = None


class RefusedError(ServiceError):
    """The service or the network will not serve these settings."""


class CursorRefusedError(RefusedError):
    """A cursor has expired, or is not taken for another reason: its window may be started again."""


class ContractError(ServiceError):
    """The answer is not what interface.md promises."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table: the class to raise, what happened, and the next step."""

    error: type[ServiceError]
    happened: str
    next_step: str


_LATER = "Run the tap again later: it goes on where it stopped."
_ADDRESS = "Check base_url: it is the address before /v1/organizations."

CASES: Final[dict[str, Case]] = {
    "400": Case(
        RefusedError,
        "The service calls the request invalid: status 400",
        "Check start_date, end_date, action_types and page_size against what the service says.",
    ),
    "cursor refused": Case(
        CursorRefusedError,
        "The service refuses its own cursor, and a new start brings nothing new: status 400",
        "These instants are not covered; what came before is delivered. Run the tap again;"
        " if it happens again, try another page_size.",
    ),
    "401": Case(
        RefusedError,
        "The access token is missing, unknown or expired: status 401",
        "Set access_token to a valid personal access token"
        " with the scope organization:audit_events_read.",
    ),
    "403": Case(
        RefusedError,
        "The access token may not read the audit events of this organization: status 403",
        "The token's owner must be an administrator of the organization in organization_id,"
        " and the token needs the scope organization:audit_events_read.",
    ),
    "404": Case(
        RefusedError,
        "There is no such address: status 404",
        f"{_ADDRESS} Check organization_id too.",
    ),
    "429": Case(
        RetryableError,
        "The token's owner sends more requests than the service allows: status 429",
        f"{_LATER} Other programs that use the same owner's tokens count too.",
    ),
    "500": Case(RetryableError, "The service failed", _LATER),
    "redirect": Case(
        RefusedError,
        "The service redirects to another address, which the access token is not sent to",
        "If the new address is right, set base_url to it; else ask who runs the service.",
    ),
    "unexpected status": Case(
        RefusedError,
        "The answer has a status that the interface does not know",
        _ADDRESS,
    ),
    "timeout": Case(
        RetryableError,
        "The service did not answer in time",
        "Raise request_timeout_seconds or lower page_size if this happens often.",
    ),
    "connection": Case(
        RetryableError,
        "The connection to the service failed",
        "Check base_url, the network, its proxy (HTTPS_PROXY, NO_PROXY) and its name service.",
    ),
    "certificate": Case(
        RefusedError,
        "The certificate of the service cannot be verified",
        "Check base_url, or name your own authority's bundle in REQUESTS_CA_BUNDLE.",
    ),
    "address": Case(
        RefusedError,
        "The request cannot be sent to this address",
        f"{_ADDRESS} Check the proxy too, where HTTPS_PROXY or ALL_PROXY names one.",
    ),
    "cut": Case(RetryableError, "The answer broke off half-way", _LATER),
    "not JSON": Case(
        RetryableError,
        "The answer is not JSON, perhaps the page of a proxy or of a sign-in",
        _ADDRESS,
    ),
    "retry-after": Case(
        RefusedError,
        "The service asks to wait longer than a run should hold on",
        "Start the next run after that time: it goes on where this one stopped.",
    ),
    "envelope": Case(
        ContractError,
        "The answer is JSON, but no page of audit events",
        f"{_ADDRESS} If it is right, report the answer to the service's support.",
    ),
    "event": Case(
        ContractError,
        "An event cannot be used: it needs a text id and a time (RFC 3339) in occurredAt",
        "The events before it are delivered. Report it to the service's support,"
        " or leave it out with start_date or end_date.",
    ),
    "nesting": Case(
        ContractError,
        "An answer is nested deeper than can be read",
        "Find the event with a small page_size, and leave it out with start_date or end_date.",
    ),
    "too large": Case(
        ContractError,
        "The answer is larger than any page can be",
        "Lower page_size. If that does not help, report it to the service's support.",
    ),
    "empty pages": Case(
        ContractError,
        "The service sends empty pages without end, each with a new nextCursor",
        "The events before them are delivered. Run the tap again;"
        " if it happens again, report it to the service's support.",
    ),
    "cursor repeated": Case(
        ContractError,
        "The service gave a nextCursor that it had given before: its pages would never end",
        "The events before it are delivered. Run the tap again;"
        " if it happens again, report it to the service's support.",
    ),
}
"""Each case of interface.md section 7, and what else can happen between asking and reading."""


def service_error(case: str, *, details: str = "") -> ServiceError:
    """The exception of a case of `CASES`, of the class that the table names."""
    return CASES[case].error(case, details=details)


_secrets: list[str] = []


def keep_secret(secret: str) -> None:
    """Never show a text again, in whatever `shown` is given: the access token."""
    escaped = json.dumps(secret)[1:-1]
    _secrets[:] = sorted({secret, escaped, quote(secret, safe="")}, key=len, reverse=True)


def shown(text: str, length: int = SHOWN_LENGTH) -> str:
    """A text from outside, safe to show.

    It is quoted, on one line, without control codes, bounded in length, and without the secret.
    """
    for secret in _secrets:
        text = text.replace(secret, "<access_token>")
    return repr(text if len(text) <= length else f"{text[:length]}…")
