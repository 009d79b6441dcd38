"""The table of errors: what happened, why, and what to do, under a code that stays the same.

Alerts and notes name these codes: a sentence may be reworded, a code keeps its name and meaning.
`docs/errors.md` is made from this table (``make docs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Kind(Enum):
    """What is done about an error; `errors.py` has a class for each."""

    RETRY = auto()
    REFUSED = auto()
    CURSOR = auto()
    CONTRACT = auto()
    SETTINGS = auto()
    OUTPUT = auto()
    STOPPED = auto()
    DEFECT = auto()


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table.

    Attributes:
        kind: what is done about it.
        happened: what happened, without a full stop.
        cause: how that comes about; for the page of errors alone.
        next_step: what to do.
    """

    kind: Kind
    happened: str
    cause: str
    next_step: str


_LATER = "Run the tap again later: it goes on where it stopped."
_ADDRESS = "Check base_url: it is the address before /v1/organizations."
_AGAIN = "Run the tap again; if it happens again, report it to the service's support."

CASES: Final[dict[str, Case]] = {
    "AE-400": Case(
        Kind.REFUSED,
        "The service calls the request invalid: status 400",
        "A value that the tap sent, as the settings have it, is none that the service takes."
        " The line shows what the service said.",
        "Check start_date, end_date, action_types and page_size against what the service says.",
    ),
    "AE-401": Case(
        Kind.REFUSED,
        "The access token is missing, unknown or expired: status 401",
        "The token was copied incompletely, was revoked, has expired,"
        " or belongs to another service than the one at base_url. Where it came from"
        " access_token_file, the file has been read again and held no token that is taken.",
        "Set access_token, or write into the file of access_token_file, a valid personal access"
        " token with the scope organization:audit_events_read.",
    ),
    "AE-403": Case(
        Kind.REFUSED,
        "The access token may not read the audit events of this organization: status 403",
        "The service knows the token, but its owner is no administrator of this organization,"
        " or no longer; or the token was made without the scope.",
        "The token's owner must be an administrator of the organization in organization_id,"
        " and the token needs the scope organization:audit_events_read.",
    ),
    "AE-404": Case(
        Kind.REFUSED,
        "There is no such address: status 404",
        "base_url leads to another service or has too long or too short a path,"
        " or the service does not know the organization.",
        f"{_ADDRESS} Check organization_id too.",
    ),
    "AE-429": Case(
        Kind.RETRY,
        "The token's owner sends more requests than the service allows: status 429",
        "The service counts the requests of a user, whichever program or token they come from.",
        f"{_LATER} Other programs that use the same owner's tokens count too.",
    ),
    "AE-500": Case(
        Kind.RETRY,
        "The service failed",
        "Something broke inside the service or in front of it, with a status of 500 or more."
        " Settings are seldom the reason.",
        _LATER,
    ),
    "AE-CURSOR-REFUSED": Case(
        Kind.CURSOR,
        "The service refuses its own cursor, and a new start brings nothing new: status 400",
        "Cursors expire, or a service forgets them. The tap then starts again at the newest instant"
        " it has delivered; that is in vain where the next cursor is refused, too, before anything"
        " new has come, as where more events share one instant than a page holds.",
        "These instants are not covered; what came before is delivered. Run the tap again;"
        " if it happens again, try another page_size.",
    ),
    "AE-REDIRECT": Case(
        Kind.REFUSED,
        "The service redirects to another address, which the access token is not sent to",
        "The service has moved, or a sign-in page or a proxy stands in front of it."
        " The line shows the new address.",
        "If the new address is right, set base_url to it; else ask who runs the service.",
    ),
    "AE-STATUS": Case(
        Kind.REFUSED,
        "The answer has a status that the interface does not know",
        "What answers is perhaps not the service but something in its place or in front of it.",
        _ADDRESS,
    ),
    "AE-TIMEOUT": Case(
        Kind.RETRY,
        "The service did not answer in time",
        "For request_timeout_seconds there was no connection or no further part of the answer,"
        " or the service itself gave up with status 408.",
        "Raise request_timeout_seconds or lower page_size if this happens often.",
    ),
    "AE-CONNECTION": Case(
        Kind.RETRY,
        "The connection to the service failed",
        "The host's name is not found, nothing listens at the address, or something on the way"
        " ends the connection. The line shows the system's own reason.",
        "Check base_url, the network, its proxy (HTTPS_PROXY, NO_PROXY) and its name service.",
    ),
    "AE-CERTIFICATE": Case(
        Kind.REFUSED,
        "The certificate of the service cannot be verified",
        "It has expired, is for another host, or is signed by an authority that is not known here,"
        " as that of a proxy which reads the traffic; or the bundle of authorities cannot be read.",
        "Check base_url, or name your own authority's bundle in REQUESTS_CA_BUNDLE.",
    ),
    "AE-ADDRESS": Case(
        Kind.REFUSED,
        "The request cannot be sent to this address",
        "base_url or the address of a proxy is written in a way that nothing can be sent to.",
        f"{_ADDRESS} Check the proxy too, where HTTPS_PROXY or ALL_PROXY names one.",
    ),
    "AE-CUT": Case(
        Kind.RETRY,
        "The answer broke off half-way",
        "The connection ended before all of the answer had come, or its packing is damaged.",
        _LATER,
    ),
    "AE-NO-JSON": Case(
        Kind.RETRY,
        "The answer is not JSON, perhaps the page of a proxy or of a sign-in",
        "Something answers in the service's place, or base_url leads to pages for people."
        " The line shows how the answer begins.",
        _ADDRESS,
    ),
    "AE-RETRY-AFTER": Case(
        Kind.REFUSED,
        "The service asks to wait longer than a run should hold on",
        "With status 429 or 5xx, its Retry-After names a time so far away that a schedule serves"
        " better than a run that waits.",
        "Start the next run after that time: it goes on where this one stopped.",
    ),
    "AE-ENVELOPE": Case(
        Kind.CONTRACT,
        "The answer is JSON, but no page of audit events",
        "base_url leads to another interface, or the service has changed its own.",
        f"{_ADDRESS} If it is right, report the answer to the service's support.",
    ),
    "AE-EVENT": Case(
        Kind.CONTRACT,
        "An event cannot be used: it needs a text id and a time (RFC 3339) in occurredAt",
        "Without them the event has no place in the order, and could not be told from others when"
        " it is read again. The line shows the event.",
        "The events before it are delivered. Report it to the service's support,"
        " or leave it out with start_date or end_date.",
    ),
    "AE-NESTING": Case(
        Kind.CONTRACT,
        "An answer is nested deeper than can be read",
        "An event holds objects or lists inside each other, hundreds deep or more.",
        "Find the event with a small page_size, and leave it out with start_date or end_date.",
    ),
    "AE-TOO-LARGE": Case(
        Kind.CONTRACT,
        "The answer is larger than any page can be",
        "The tap reads no further than max_response_megabytes, far above a page of large events,"
        " so that no answer can fill the memory.",
        "Lower page_size, or raise max_response_megabytes if events are that large. If neither"
        " helps, report it to the service's support.",
    ),
    "AE-EMPTY-PAGES": Case(
        Kind.CONTRACT,
        "The service sends empty pages without end, each with a new nextCursor",
        "An empty page is allowed, and more may follow it; so many in a row lead nowhere.",
        f"The events before them are delivered. {_AGAIN}",
    ),
    "AE-CURSOR-REPEATED": Case(
        Kind.CONTRACT,
        "The service gave a nextCursor that it had given before: its pages would never end",
        "The service's pages go round in a circle.",
        f"The events before it are delivered. {_AGAIN}",
    ),
    "AE-SETTINGS": Case(
        Kind.SETTINGS,
        "A setting is missing or wrong",
        "Settings are checked before the first request. Each line names one, and says what would"
        " be right.",
        "Mend it in the config file or, with --config ENV, in the environment.",
    ),
    "AE-FILE": Case(
        Kind.SETTINGS,
        "A config, catalog or state file cannot be used",
        "It is not there, may not be read, or holds no JSON object, as where it was cut off.",
        "Check the path and that the file is whole. A first run has no state: leave out --state.",
    ),
    "AE-STATE": Case(
        Kind.SETTINGS,
        "The state cannot be used",
        "It is of another shape than a state of this tap, or of another organization."
        " It is not taken for an empty one: that would read every event again.",
        "Give the last state that the target printed for this organization."
        " To start over, run without a state.",
    ),
    "AE-CATALOG": Case(
        Kind.SETTINGS,
        "The catalog cannot be used",
        "It is of another shape, lacks the stream audit_events,"
        " or asks for another replication than there is.",
        "Make a new one with --discover, and make your changes in it.",
    ),
    "AE-STREAM-MAPS": Case(
        Kind.SETTINGS,
        "stream_maps cannot be used",
        "An expression in stream_maps is not valid, or fails for the event that the line names.",
        "Mend the expression. What was read before that event is delivered.",
    ),
    "AE-TARGET": Case(
        Kind.OUTPUT,
        "The target closed its input before the tap was done",
        "The target ended by itself, most often with an error of its own.",
        "Look for the target's own error."
        " The next run goes on from the last STATE that the target acknowledged.",
    ),
    "AE-OUTPUT": Case(
        Kind.OUTPUT,
        "The tap cannot write to stdout",
        "stdout is closed, or is a file on a disk that is full.",
        "The next run goes on from the last STATE that the target acknowledged.",
    ),
    "AE-STOPPED": Case(
        Kind.STOPPED,
        "Stopped by a signal",
        "A person (Ctrl-C), a scheduler's time limit or a machine that shuts down"
        " asked the run to end.",
        "What was read so far is written and in STATE. The next run goes on there.",
    ),
    "AE-DEFECT": Case(
        Kind.DEFECT,
        "The tap failed in a way that it does not expect",
        "This is a defect of the tap or of a library that it uses.",
        "Report it to those who maintain the tap, with the lines of the log around this one."
        " The next run goes on from the last STATE that the target acknowledged.",
    ),
}
"""Each status of interface.md section 7, and what else can end a run."""
