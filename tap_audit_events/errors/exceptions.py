"""The exceptions, grouped by what to do about them.

::

  AuditEventsError          one entry of the catalogue; its message is one log line
  ├── SettingsError         fix a setting, or the config, catalog or state file
  ├── OutputError           output cannot be written, or loaded events cannot be read or differ
  ├── StoppedError          a signal or close() stopped the run; run again
  ├── OrganizationsError    some of several organizations failed; see the error of each
  └── ServiceError          the service's response is an error, or there is no response
      ├── RetryableError    wait and retry, also if a gateway responds in the service's place;
      │                     raised once the retries are used up
      ├── RefusedError      fix the token, its owner's rights or the URL
      │   └── CursorRefusedError    restart the window
      └── ContractError     the response does not follow the interface
"""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from tap_audit_events.errors.catalogue import CATALOGUE, Category
from tap_audit_events.errors.installation import command_for
from tap_audit_events.errors.redaction import longest_form, redact

MAX_TEXT_LENGTH: Final = 300
"""Maximum number of characters that a message shows of a text from outside."""

_GATEWAYS: Final = frozenset({"AE-GATEWAY", "AE-REDIRECT"})

_START_BYTES: Final = 4000
"""This many bytes of a long text from outside are enough for a message."""

_TITLE: Final = re.compile(rb"<title[^<>]{0,99}>\s*([^<]{1,300}?)\s*</title", re.IGNORECASE)


class AuditEventsError(Exception):
    """An error with a code from the catalogue. Its message says what happened and what to do.

    Args:
        code: key of `CATALOGUE`.
        context: details of this case, which follow the summary of the catalogue.

    Attributes:
        code: as in the catalogue, for example ``AE-429``.
        exit_code: exit code of the process that this error ends.
    """

    exit_code = 1

    def __init__(self, code: str, context: str = "") -> None:
        super().__init__(code, context)
        self.code = code
        self._context = context

    def __reduce__(self) -> tuple[Any, ...]:
        """Let `pickle` restore the error with its attributes and notes, without `__init__`."""
        return Exception.__new__, (type(self), self.code), self.__dict__

    def without_frames(self) -> Self:
        """The error without its traceback and context, which would keep the response in memory."""
        self.__context__ = None
        return self.with_traceback(None)

    @property
    def summary(self) -> str:
        """The code, what happened and the context, without the next step."""
        return f"{self.code}: {CATALOGUE[self.code].summary}{self._context}"

    @property
    def next_step(self) -> str:
        """What to do."""
        return CATALOGUE[self.code].next_step

    @property
    def lines(self) -> tuple[str, ...]:
        """The log lines for this error."""
        return (f"{self.summary}. {self.next_step}",)

    def __str__(self) -> str:
        *before, last = self.lines
        parted = [line if line.endswith(".") else f"{line};" for line in before]
        return " ".join([*parted, last])


class SettingsError(AuditEventsError):
    """Settings, or a config, catalog or state file, that cannot be used.

    Args:
        problems: one sentence for each thing to fix; each becomes a log line.
        code: key of `CATALOGUE`.
    """

    def __init__(self, problems: Sequence[str], code: str = "AE-SETTINGS") -> None:
        super().__init__(code)
        self._lines = tuple(f"{code}: {problem}" for problem in problems)

    @classmethod
    def joined(cls, errors: Sequence[SettingsError]) -> SettingsError:
        """One error with the lines of all, and the code of the first."""
        error = cls([], errors[0].code)
        error._lines = tuple(line for each in errors for line in each.lines)
        return error

    @property
    def lines(self) -> tuple[str, ...]:
        """One log line for each thing to fix."""
        return self._lines


class OutputError(AuditEventsError):
    """Output cannot be written, or loaded events cannot be read or differ from the service's.

    Args:
        reason: what is wrong, None if the target has closed the pipe.
        code: key of `CATALOGUE`; ignored without a reason.
    """

    def __init__(self, reason: str | None = None, code: str = "AE-OUTPUT") -> None:
        if reason is None:
            super().__init__("AE-TARGET")
        else:
            super().__init__(code, f": {reason}")


class StoppedError(AuditEventsError):
    """A signal or ``close()`` stopped the run before its end.

    The exit code is 128 + the signal's number.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__("AE-STOPPED", f", {signal.Signals(signal_number).name}")
        self.exit_code = 128 + signal_number


class OrganizationsError(AuditEventsError):
    """Some of several organizations could not be read to their end.

    Attributes:
        errors: the error of each organization that failed, by its id.
        not_started: the organizations that were given up before a request for them was sent, by
            their ids: the code of the error that led to it, and why.
    """

    def __init__(
        self,
        errors: Mapping[str, AuditEventsError],
        count: int,
        *,
        not_started: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.errors = errors
        self.not_started = not_started or {}
        failed = len(errors) + len(self.not_started)
        super().__init__("AE-ORGANIZATIONS", f": {failed} of {count}")

    @property
    def lines(self) -> tuple[str, ...]:
        """A log line for the whole run, those of each error, and one for each reason to give up."""
        each = (
            f"{error.code}: {organization_id}: {line.removeprefix(f'{error.code}: ')}"
            for organization_id, error in self.errors.items()
            for line in error.lines
        )
        rest = (
            f"{code}: {count} more {'organization was' if count == 1 else 'organizations were'}"
            f" not started, because {reason}"
            for (code, reason), count in Counter(self.not_started.values()).items()
        )
        return (*super().lines, *each, *rest)


class ServiceError(AuditEventsError):
    """An error response of the service, or no response.

    Args:
        code: key of `CATALOGUE`.
        details: the cause, or the service's message; text from outside has passed `sanitize`.

    Attributes:
        window: the window of the request, as text; empty until it is known.
        advice: what to do in this case, instead of the next step in the catalogue; may be empty.
        concerns_token: whether requests for other organizations with the token fail as well.
    """

    def __init__(self, code: str, *, details: str = "", advice: str = "") -> None:
        super().__init__(code)
        self.concerns_token = code in ("AE-401", "AE-429")
        self.details = details
        self.window = ""
        self.advice = advice

    @property
    def summary(self) -> str:
        """The code, what happened, the details, and the window."""
        details = f" ({self.details})" if self.details else ""
        window = f", in the window {self.window}" if self.window else ""
        return f"{super().summary}{details}{window}"

    @property
    def next_step(self) -> str:
        """The advice for this case, or the next step in the catalogue."""
        return self.advice or super().next_step

    @property
    def is_gateway(self) -> bool:
        """Whether something between this machine and the service has responded in its place."""
        return self.code in _GATEWAYS


class RetryableError(ServiceError):
    """The same request may succeed later.

    Attributes:
        retry_after_seconds: the minimum wait that the service requests, None if it requests none.
    """

    retry_after_seconds: float | None = None


class RefusedError(ServiceError):
    """The service or the network refuses every request with these settings, or for a long time."""


class CursorRefusedError(RefusedError):
    """The service refuses a cursor, for example an expired one. The window can be restarted."""


class ContractError(ServiceError):
    """The response does not follow the service's interface."""


_SERVICE_ERRORS: Final[dict[Category, type[ServiceError]]] = {
    Category.RETRY: RetryableError,
    Category.REFUSED: RefusedError,
    Category.CURSOR: CursorRefusedError,
    Category.CONTRACT: ContractError,
}


def service_error(code: str, *, details: str = "", advice: str = "") -> ServiceError:
    """The exception for a code, of the class that fits the code's category."""
    return _SERVICE_ERRORS[CATALOGUE[code].category](code, details=details, advice=advice)


def is_temporary(error: AuditEventsError) -> bool:
    """Whether a later run may succeed without any change."""
    if isinstance(error, OrganizationsError):
        return all(map(is_temporary, error.errors.values()))
    return isinstance(error, RetryableError) or error.code == "AE-RETRY-AFTER"


def missing_extra(library: str, extra: str) -> SettingsError:
    """The error for a library that an extra of the package installs."""
    problem = (
        f"{library}, of the extra [{extra}], is not installed. This command adds it and keeps"
        f" everything else: {command_for(extra, library)}"
    )
    return SettingsError([problem], "AE-EXTRA")


def defect(error: BaseException) -> AuditEventsError:
    """The error ``AE-DEFECT`` for an unexpected exception."""
    return AuditEventsError("AE-DEFECT", f" ({type(error).__name__}: {sanitize(error)})")


def sanitize(value: object, max_length: int = MAX_TEXT_LENGTH) -> str:
    """A value from outside as text, made safe for a message.

    The result is quoted, on one line, free of control characters and secrets, and of bounded
    length.
    """
    text = redact(str(value))
    return repr(text if len(text) <= max_length else f"{text[:max_length]}…")


def sanitize_body(body: bytes, *, is_cut: bool = False) -> str:
    """The title of a web page, or the start of any other body, made safe for a message."""
    title = _TITLE.search(body[:_START_BYTES])
    if title is not None:
        return f"a page titled {sanitize(' '.join(title[1].decode(errors='replace').split()))}"
    return f"body {sanitize_start(body, is_cut=is_cut)}"


def sanitize_start(
    text: bytes | memoryview, max_length: int = MAX_TEXT_LENGTH, *, is_cut: bool = False
) -> str:
    """The start of a long text from outside, made safe as by `sanitize`.

    A cut secret cannot be recognized, so the last characters, possibly part of one, are left out.

    Args:
        text: UTF-8; other bytes are shown as escapes.
        max_length: maximum number of characters that are shown, before they are escaped.
        is_cut: whether the text itself is only a start.
    """
    margin = longest_form()
    start = bytes(text[: _START_BYTES + 4 * margin])  # a character has at most four bytes
    shown = redact(start.decode(errors="backslashreplace"))
    if margin and (is_cut or len(start) < len(text)):
        shown = shown[:-margin]
    return sanitize(shown, max_length)
