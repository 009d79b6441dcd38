"""The catalogue of errors: what happened, why, and what to do.

Alerts look for the codes: a sentence may be reworded, a code keeps its name and meaning.
`docs/errors.md` is generated from this catalogue (``make docs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Category(Enum):
    """What to do about an error. `exceptions.py` has a class for each category."""

    RETRY = auto()
    REFUSED = auto()
    CURSOR = auto()
    CONTRACT = auto()
    SETTINGS = auto()
    OUTPUT = auto()
    STOPPED = auto()
    DEFECT = auto()


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One entry of the catalogue.

    Attributes:
        category: what to do about it.
        summary: what happened, without a full stop.
        cause: why the error occurs; only `docs/errors.md` shows it.
        next_step: what the user can do.
    """

    category: Category
    summary: str
    cause: str
    next_step: str


_RESUMES_WITH_STATE = "A run with a state resumes where it stopped."
_RUN_LATER = f"Run it again later. {_RESUMES_WITH_STATE}"
_CHECK_URL = "Check base_url: it is the part of the URL before /v1/organizations."
_RUN_AGAIN = "Run it again. If the error returns, report it to the service's support."
_OF_AN_EVENT = (
    "Report it to the service's support. To continue after it, set quarantine_file, which keeps it"
    " in a file; or exclude the whole second of its time with start_date or end_date, which is the"
    " only way in Airbyte and Spark."
)
_RESUMES = "The next run resumes after the last STATE that the target acknowledged."

CATALOGUE: Final[dict[str, ErrorEntry]] = {
    "AE-400": ErrorEntry(
        Category.REFUSED,
        "The service calls the request invalid",
        "The service does not accept a value from the settings. The line shows the service's"
        " message.",
        "Compare start_date, end_date, action_types and page_size with the service's message.",
    ),
    "AE-401": ErrorEntry(
        Category.REFUSED,
        "The access token is missing, unknown or expired",
        "The token is incomplete, was revoked, has expired, or belongs to another service than the"
        " one at base_url. If it came from access_token_file, the tap has read the file again and"
        " found no token that the service accepts.",
        "Set a valid personal access token with the scope organization:audit_events_read.",
    ),
    "AE-403": ErrorEntry(
        Category.REFUSED,
        "The access token may not read the audit events of this organization",
        "The token is valid, but its owner is not an administrator of this organization,"
        " or the token lacks the scope.",
        "The token's owner must be an administrator of the organization in organization_id,"
        " and the token needs the scope organization:audit_events_read.",
    ),
    "AE-404": ErrorEntry(
        Category.REFUSED,
        "The service does not know this URL",
        "base_url points to another service or has a wrong path, or the service has no organization"
        " with this id.",
        f"{_CHECK_URL} Check organization_id too.",
    ),
    "AE-429": ErrorEntry(
        Category.RETRY,
        "The token's owner sends more requests than the service allows",
        "The service counts the requests of a user, whichever program or token they come from. It"
        " responds with status 429, or with status 403 and a Retry-After header.",
        f"{_RUN_LATER} If the error returns, lower concurrency, or give the tap a user of its own:"
        " other programs that use the owner's tokens count too.",
    ),
    "AE-500": ErrorEntry(
        Category.RETRY,
        "The service failed",
        "The service, or a gateway in front of it, responded with a status of 500 or more."
        " The settings are rarely the cause.",
        _RUN_LATER,
    ),
    "AE-CURSOR-REFUSED": ErrorEntry(
        Category.CURSOR,
        "The service refuses its own cursor, and the window cannot be continued without it",
        "The cursor has expired, or a gateway refuses it as too long, and requesting the rest of"
        " the window without a cursor brings nothing new, lacks events that were there before, or"
        " is impossible because the events are out of order.",
        f"Run it again. {_RESUMES_WITH_STATE} If the error returns, try another page_size.",
    ),
    "AE-GATEWAY": ErrorEntry(
        Category.RETRY,
        "Something other than the service responds, such as a gateway, a proxy or a sign-in page",
        "The response is neither a page of audit events with status 200 nor an error with errCode,"
        " msg and vars. With status 401 or 403 a firewall may block this machine; with status 404"
        " the service may be restarting. The line shows the page's title or the response's start.",
        "Check what is between this machine and the service: a proxy (HTTPS_PROXY, NO_PROXY), a"
        " VPN, a sign-in page, a firewall's list of allowed addresses."
        f" {_CHECK_URL} {_RESUMES_WITH_STATE}",
    ),
    "AE-REDIRECT": ErrorEntry(
        Category.RETRY,
        "The service redirects to another URL, and the access token is not sent there",
        "A sign-in page or a proxy stands in front of the service, or the service has moved."
        " The line shows the new URL.",
        "If the new URL is that of a sign-in page, check the proxy (HTTPS_PROXY, NO_PROXY) and the"
        " VPN. If the service has moved, set base_url to the part of the new URL before"
        " /v1/organizations.",
    ),
    "AE-STATUS": ErrorEntry(
        Category.REFUSED,
        "The response has a status that the interface does not define",
        "The service responds with another error than those of its interface. Status 414 or 431"
        " means that the request is too long, perhaps because of action_types.",
        _CHECK_URL,
    ),
    "AE-TIMEOUT": ErrorEntry(
        Category.RETRY,
        "The service did not respond in time",
        "There was no connection, or no further part of the response, within"
        " request_timeout_seconds; or the whole response took more than ten times as long; or the"
        " service responded with status 408.",
        f"{_RUN_LATER} If this happens often, raise request_timeout_seconds or lower page_size.",
    ),
    "AE-CONNECTION": ErrorEntry(
        Category.RETRY,
        "The connection to the service failed",
        "The name of the host cannot be resolved, nothing listens at the host and port, or"
        " something on the way closes the connection. The line shows the system's own reason.",
        "Check base_url, the network, DNS, and the proxy (HTTPS_PROXY, NO_PROXY).",
    ),
    "AE-CERTIFICATE": ErrorEntry(
        Category.REFUSED,
        "The certificate of the service cannot be verified",
        "The certificate has expired, is for another host, or is signed by an unknown authority,"
        " such as that of a proxy that reads the traffic; or the CA bundle cannot be read.",
        "Check base_url, or name your own CA bundle in REQUESTS_CA_BUNDLE.",
    ),
    "AE-ADDRESS": ErrorEntry(
        Category.REFUSED,
        "No request can be sent to this URL",
        "The URL of a proxy, or base_url, is malformed; or the proxy refuses the user or password"
        " in its URL (status 407); or it is a SOCKS proxy, and the package PySocks is not"
        " installed.",
        "If HTTPS_PROXY or ALL_PROXY names a proxy, check its URL first; a SOCKS proxy needs the"
        f" package PySocks too. {_CHECK_URL}",
    ),
    "AE-CUT": ErrorEntry(
        Category.RETRY,
        "The response is incomplete",
        "The connection closed before the response was complete, or the response's compression,"
        " Content-Length or Transfer-Encoding is wrong, or one of its headers is malformed.",
        _RUN_LATER,
    ),
    "AE-NO-JSON": ErrorEntry(
        Category.RETRY,
        "The response is not JSON, although it begins like a page of audit events, or is empty",
        "Something on the way has cut or changed the response. The line shows its start.",
        _RUN_LATER,
    ),
    "AE-RETRY-AFTER": ErrorEntry(
        Category.REFUSED,
        "The service requests a longer wait than a run allows",
        "The Retry-After header of a response with status 403, 408, 429 or 5xx, or of a gateway,"
        " names a time more than fifteen minutes away. The run ends instead of waiting so long.",
        f"Run it again after that time. {_RESUMES_WITH_STATE}",
    ),
    "AE-ENVELOPE": ErrorEntry(
        Category.CONTRACT,
        "The response has auditEvents, but is not a page of audit events",
        "The service does not follow its interface, or has changed it. The line shows the start of"
        " the response.",
        "Report the response to the service's support.",
    ),
    "AE-EVENT": ErrorEntry(
        Category.CONTRACT,
        "An event cannot be used: it must be JSON, with a string id and an RFC 3339 time in"
        " occurredAt",
        "Without id and time, the tap cannot order the event, or recognize it when it is sent"
        " again. An id has 1 to 1,000 characters, occurredAt at most 100. NaN, a control character"
        " that is not escaped and a byte that is not UTF-8 are not JSON. The line says what is"
        " wrong, and shows the event.",
        _OF_AN_EVENT,
    ),
    "AE-EVENT-SIZE": ErrorEntry(
        Category.CONTRACT,
        "An event is larger than the tap accepts",
        "The limit is 8 MB, thousands of times the usual size, so that no event can fill the"
        " memory. The line shows the start of the event.",
        _OF_AN_EVENT,
    ),
    "AE-NESTING": ErrorEntry(
        Category.CONTRACT,
        "The response, or an event in it, is nested too deeply to read",
        "An event has objects or lists inside each other, usually a thousand or more levels deep;"
        " with quarantine_file, more than 200 levels are set aside. The line shows the event, if"
        " the response has one that is nested so deeply.",
        _OF_AN_EVENT,
    ),
    "AE-TOO-LARGE": ErrorEntry(
        Category.CONTRACT,
        "The response is larger than max_response_megabytes",
        "The tap reads no more, so that no response can fill the memory. The default is far above a"
        " page of large events.",
        "Lower page_size, or raise max_response_megabytes if events are that large. If neither"
        " helps, report it to the service's support.",
    ),
    "AE-TOO-MANY-EVENTS": ErrorEntry(
        Category.CONTRACT,
        "The page contains too many events",
        "The service, or something in its place, ignores pageSize, whose maximum is 1,000.",
        f"{_CHECK_URL} If it is right, report the page to the service's support.",
    ),
    "AE-CURSOR-LENGTH": ErrorEntry(
        Category.CONTRACT,
        "The service sent a nextCursor that is too long for a URL",
        "The URL of the next request would contain it, and many servers refuse URLs of more than 8"
        " or 16 KiB. The tap accepts cursors of at most 16,384 characters.",
        "Report it to the service's support.",
    ),
    "AE-EMPTY-PAGES": ErrorEntry(
        Category.CONTRACT,
        "The service keeps sending pages without events of the range, each with a new nextCursor",
        "An empty page is allowed, because events may follow it, but not more than 1,000 in a row.",
        _RUN_AGAIN,
    ),
    "AE-NO-PROGRESS": ErrorEntry(
        Category.CONTRACT,
        "The service's pages contain only events that it has already sent in the same window",
        "The service, or a gateway in front of it, ignores the cursor and sends the same events"
        " with a new nextCursor each time.",
        _RUN_AGAIN,
    ),
    "AE-WINDOW": ErrorEntry(
        Category.CONTRACT,
        "The service shows an event in one time window, but not in the next one, to which it"
        " belongs",
        "The event appeared or was deleted between the two requests, or the service filters by"
        " other times than it shows. Nothing after the missing event is delivered.",
        "Run it again. If the error returns, set concurrency to 1, which requests one window, and"
        " report it to the service's support.",
    ),
    "AE-CURSOR-REPEATED": ErrorEntry(
        Category.CONTRACT,
        "The service sent the same nextCursor again, so its pages would never end",
        "The service's cursors lead back to a page that it has already sent.",
        _RUN_AGAIN,
    ),
    "AE-SETTINGS": ErrorEntry(
        Category.SETTINGS,
        "A setting is missing or wrong",
        "The tap checks its settings before the first request. Each line names one setting and"
        " says what is wrong with it.",
        "Fix it in the config file or, with --config ENV, in the environment.",
    ),
    "AE-FILE": ErrorEntry(
        Category.SETTINGS,
        "A config, catalog, state or OCSF map file cannot be used",
        "The file does not exist, may not be read, is too large, or does not contain a JSON"
        " object, for example because it is incomplete.",
        "Check the path, and that the file is complete. A first run has no state: leave out"
        " --state.",
    ),
    "AE-STATE": ErrorEntry(
        Category.SETTINGS,
        "The state cannot be used",
        "It does not look like a state of this tap, or belongs to another organization. If it were"
        " treated as empty, every event would be read again.",
        "Give the last state that the target printed for this organization. To start over, run"
        " without a state; with several organizations, remove only this one's bookmark from the"
        " state.",
    ),
    "AE-CATALOG": ErrorEntry(
        Category.SETTINGS,
        "The catalog cannot be used",
        "It is not a Singer catalog (in Airbyte: not a configured catalog), lacks the stream"
        " audit_events, or names a replication method, sync mode or key that the stream does not"
        " have.",
        "Generate a new one with --discover, and repeat your changes in it.",
    ),
    "AE-STREAM-MAPS": ErrorEntry(
        Category.SETTINGS,
        "stream_maps cannot be used",
        "An expression in stream_maps is invalid, or cannot be evaluated for the event that the"
        " line names.",
        "Fix the expression. The events before that one are delivered.",
    ),
    "AE-TARGET": ErrorEntry(
        Category.OUTPUT,
        "The target closed its input before the tap was done",
        "The target ended, usually with an error of its own.",
        f"Look for the target's own error. {_RESUMES}",
    ),
    "AE-OUTPUT": ErrorEntry(
        Category.OUTPUT,
        "The tap cannot write to stdout",
        "stdout is closed, or is a file on a full disk.",
        f"Free space, or check what stdout is connected to. {_RESUMES}",
    ),
    "AE-BATCH-FILE": ErrorEntry(
        Category.OUTPUT,
        "A batch file cannot be written",
        "The disk of batch_config.storage.root is full, its folder cannot be created or written"
        " to, or something removed the file before it was complete. An incomplete file is removed.",
        f"Free space, or set batch_config.storage.root to another folder. {_RESUMES}",
    ),
    "AE-QUARANTINE": ErrorEntry(
        Category.OUTPUT,
        "The file for events that cannot be used cannot be written",
        "The folder of the setting quarantine_file, or of --quarantine, does not exist or may not"
        " be written to, its disk is full, or the path is not a file. The run ends before it passes"
        " an event that is not in the file.",
        f"Fix that, or give another path. {_RESUMES_WITH_STATE}",
    ),
    "AE-ORGANIZATIONS": ErrorEntry(
        Category.REFUSED,
        "Some organizations could not be read to their end",
        "An error ends only its own organization. The others are read to their end, and STATE"
        " covers what was delivered of each. If the service refuses or limits a token, no more"
        " organizations are started with it; if it sends no page to anybody, no more are started.",
        f"The lines that follow give the error of each. {_RESUMES_WITH_STATE}",
    ),
    "AE-EXPORT": ErrorEntry(
        Category.OUTPUT,
        "The output cannot be written",
        "The disk is full, the folder does not exist or may not be written to, another program has"
        " the file open, or the path, its content and the state file do not fit together. Or the"
        " database, object store or catalog cannot be reached, or refuses the table or a right. The"
        " line says which.",
        "Fix that, and run the command again.",
    ),
    "AE-RECEIVER": ErrorEntry(
        Category.OUTPUT,
        "The receiver does not accept events",
        "The receiver of ship is down, slow, or limits requests, or does not acknowledge what it"
        " has received, and all retries are used up, or it requests a wait of more than 15 minutes."
        " The line shows what it responded. The service is not involved.",
        "Check the receiver, then run the command again: nothing is lost.",
    ),
    "AE-RECEIVER-REFUSED": ErrorEntry(
        Category.OUTPUT,
        "The receiver refuses requests",
        "The URL or the secret of the receiver is wrong, it does not know gzip, or it refuses every"
        " event. The line shows what it responded. The service is not involved.",
        "Compare --to, and the secret in AUDIT_EVENTS_RECEIVER_SECRET or --secret-file, with the"
        " receiver's own page. If it does not know gzip, give --no-gzip.",
    ),
    "AE-RECEIVER-EVENT": ErrorEntry(
        Category.OUTPUT,
        "The receiver refuses an event for good",
        "The event is too large for the receiver, or does not fit its mapping; or the receiver"
        " cannot read any event, most often because it does not know gzip. The line shows why, and"
        " how the event begins.",
        "If no event arrives, give --no-gzip. Else change the receiver's limit or mapping, or give"
        " --quarantine FILE, which keeps such events with the reason. Then run the command again.",
    ),
    "AE-BUSY": ErrorEntry(
        Category.OUTPUT,
        "Another run is writing to the same output",
        "An earlier run of audit-events has not ended, for example because cron starts the next one"
        " too soon.",
        "Wait until it has ended, or end it.",
    ),
    "AE-DIFFERENT": ErrorEntry(
        Category.OUTPUT,
        "The loaded events are not those that the service shows",
        "audit-events verify has found events that are missing, rows that the service does not show"
        " or that are there twice, or events with another time.",
        "Missing events: load the file that --repair FILE writes; with --repair-format jsonl,"
        " append it to JSON Lines. Rows that are too many: docs/proof.md says where they come"
        " from.",
    ),
    "AE-LOADED": ErrorEntry(
        Category.OUTPUT,
        "The loaded events cannot be read",
        "It does not exist, may not be read, or has other columns than loaders create, or another"
        " program has the DuckDB file open. The line says which.",
        "Check --against or --from, and --table or --schema.",
    ),
    "AE-EXTRA": ErrorEntry(
        Category.SETTINGS,
        "A required library is not installed",
        "Arrow and Parquet need pyarrow, DuckDB files, verify and report need duckdb, PostgreSQL"
        " needs psycopg, Delta needs deltalake, and Iceberg needs pyiceberg. They are extras of the"
        " package, as the tap needs none of them.",
        "Run the command that the line ends with. It adds the library, and keeps other extras.",
    ),
    "AE-THREADS": ErrorEntry(
        Category.SETTINGS,
        "The limit of threads is reached (pids.max of the cgroup or RLIMIT_NPROC), so no request"
        " can be sent",
        "The container or the user has as many processes and threads as its limit allows. With at"
        " least one more thread, a run would continue.",
        "Raise the limit (--pids-limit of Docker and Podman, podPidsLimit of Kubernetes, TasksMax"
        " of systemd, ulimit -u), or end other processes.",
    ),
    "AE-STOPPED": ErrorEntry(
        Category.STOPPED,
        "Stopped by a signal",
        "A person (Ctrl-C), the time limit of a scheduler or the shutdown of the machine"
        " stopped the run.",
        f"Run it again. {_RESUMES_WITH_STATE}",
    ),
    "AE-DEFECT": ErrorEntry(
        Category.DEFECT,
        "The tap failed unexpectedly",
        "This is a defect of the tap or of a library that it uses, not of your settings.",
        f"Report it to the maintainers of the tap, with the log lines around this one. {_RESUMES}",
    ),
}
"""Every status of interface.md, section 7, and everything else that can end a run."""
