"""What can go wrong: the exceptions, grouped by what somebody does about them.

::

  AuditEventsError          a case of the table in `cases.py`: one line for who runs the tap
  ├── SettingsError         mend a setting, or a config, catalog or state file
  ├── OutputError           look at the target: it no longer reads
  ├── StoppedError          a signal asked to stop; run again
  └── ServiceError          an answer of the service, or none
      ├── RetryableError    wait and ask again; final when the retries are used up
      ├── RefusedError      mend the token, its owner's rights or the address
      │   └── CursorRefusedError    start the window again
      └── ContractError     the service answered outside of its interface
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Final

from tap_audit_events.errors.catalogue import CASES, Kind
from tap_audit_events.errors.redaction import without_secrets

SHOWN_LENGTH: Final = 300
"""Characters of a text from outside that a message shows at most."""


class AuditEventsError(Exception):
    """One line that says what happened, where and what to do, after the code of its case.

    Args:
        code: key of `CASES`.
        told: what is known beyond the table, to follow on what happened.

    Attributes:
        exit_code: of the process that it ends.
    """

    exit_code = 1

    def __init__(self, code: str, told: str = "") -> None:
        super().__init__(code, told)
        self.code = code
        self._told = told

    @property
    def told(self) -> str:
        """What is known beyond the table."""
        return self._told

    @property
    def happened(self) -> str:
        """What happened and where, without the next step."""
        return f"{self.code}: {CASES[self.code].happened}{self.told}"

    @property
    def lines(self) -> tuple[str, ...]:
        """What the log says of it."""
        return (f"{self.happened}. {CASES[self.code].next_step}",)

    def __str__(self) -> str:
        return "; ".join(self.lines)


class SettingsError(AuditEventsError):
    """Something the user gave is wrong.

    Args:
        problems: one sentence for each thing to mend; each is a line.
        code: key of `CASES`.
    """

    def __init__(self, problems: Sequence[str], code: str = "AE-SETTINGS") -> None:
        super().__init__(code)
        self._problems = problems

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each thing to mend."""
        return tuple(f"{self.code}: {problem}" for problem in self._problems)


class OutputError(AuditEventsError):
    """What the tap writes cannot be written: the target no longer reads, or a disk is full.

    Args:
        reason: the system's words, None where the target has closed its end of the pipe.
    """

    def __init__(self, reason: str | None = None) -> None:
        if reason is None:
            super().__init__("AE-TARGET")
        else:
            super().__init__("AE-OUTPUT", f": {reason}")


class StoppedError(AuditEventsError):
    """A signal asked the run to stop before it was done: its exit code is 128 + the number."""

    def __init__(self, signal_number: int) -> None:
        super().__init__("AE-STOPPED", f", {signal.Signals(signal_number).name}")
        self.exit_code = 128 + signal_number


class ServiceError(AuditEventsError):
    """An answer of the service that ends the run, or no answer.

    Args:
        code: key of `CASES`.
        details: what the service said, already made safe with `shown`.

    Attributes:
        where: the request it is about, known to whoever sent it.
    """

    def __init__(self, code: str, *, details: str = "") -> None:
        super().__init__(code)
        self.details = details
        self.where = ""

    @property
    def told(self) -> str:
        """What the service said, and where."""
        said = f" ({self.details})" if self.details else ""
        where = f", {self.where}" if self.where else ""
        return f"{said}{where}"


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


_SERVICE_ERRORS: Final[dict[Kind, type[ServiceError]]] = {
    Kind.RETRY: RetryableError,
    Kind.REFUSED: RefusedError,
    Kind.CURSOR: CursorRefusedError,
    Kind.CONTRACT: ContractError,
}


def service_error(code: str, *, details: str = "") -> ServiceError:
    """The exception of a case of the service, of the class for its kind."""
    return _SERVICE_ERRORS[CASES[code].kind](code, details=details)


def shown(text: str, length: int = SHOWN_LENGTH) -> str:
    """A text from outside, safe to show.

    It is quoted, on one line, without control codes, bounded in length, and without the secret.
    """
    text = without_secrets(text)
    bounded = text if len(text) <= length else f"{text[:length]}…"
    return without_secrets(repr(bounded))  # once more: an escape may end as the secret begins
