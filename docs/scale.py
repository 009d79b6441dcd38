"""Computes the sizing table of docs/scale.md: the needs of daily exports of many organizations.

The assumptions are the fields of `Assumptions`, so that they can be read, changed and tested like
the arithmetic.
"""

from dataclasses import dataclass
from math import ceil

DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Assumptions:
    """The assumptions of the table about each organization and the service.

    Attributes:
        events: events of an organization in a day.
        event_bytes: bytes of an event in a response.
        parquet_bytes: bytes of an event in a Parquet file compressed with zstd.
        page_size: events in a response.
        response_seconds: seconds from a request to the end of its response.
        runs: exports of an organization in a day; each reads the day from its start.
        start_seconds: seconds from the start of a run to its first request: pod, Python, Dagster.
        requests_per_second: requests that the service allows the owner of a token each second.
    """

    events: int = 5_000
    event_bytes: int = 700
    parquet_bytes: int = 60
    page_size: int = 1_000
    response_seconds: float = 0.3
    runs: int = 26
    start_seconds: float = 30.0
    requests_per_second: float = 10.0


@dataclass(frozen=True)
class Load:
    """The needs of a number of organizations."""

    organizations: int
    given: Assumptions

    @property
    def events(self) -> int:
        """Events of all organizations in a day."""
        return self.organizations * self.given.events

    @property
    def pages_of_a_run(self) -> float:
        """Pages of a run, on average.

        A run in the middle of the day reads half of the day, and the two extra runs after midnight
        read the whole day before. A run without events reads one page.
        """
        full = ceil(self.given.events / self.given.page_size)
        hourly = self.given.runs - 2
        pages = sum(max(1, ceil(full * hour / hourly)) for hour in range(1, hourly + 1))
        return (pages + 2 * full) / self.given.runs

    @property
    def requests(self) -> int:
        """Requests in a day; each run reads its pages twice, for the export and for its check."""
        return ceil(self.organizations * self.given.runs * 2 * self.pages_of_a_run)

    @property
    def requests_per_second(self) -> float:
        """Requests per second, on average over a day."""
        return self.requests / DAY_SECONDS

    @property
    def downloaded_gigabytes(self) -> float:
        """GB read in a day, before compression."""
        events = self.requests * self.given.events / ceil(self.given.events / self.given.page_size)
        return events * self.given.event_bytes / 1e9

    @property
    def stored_gigabytes(self) -> float:
        """GB added to the files in a year."""
        return self.events * 365 * self.given.parquet_bytes / 1e9

    @property
    def run_seconds(self) -> float:
        """Seconds of a run: its start, and its pages twice, one after the other."""
        return self.given.start_seconds + 2 * self.pages_of_a_run * self.given.response_seconds

    @property
    def pods(self) -> int:
        """Pods that are needed at a time so that the runs of an hour end within the hour."""
        return ceil(self.organizations * self.run_seconds / 3600)

    @property
    def token_owners(self) -> int:
        """Owners that are needed to stay below the rate limit of each, if requests are spread."""
        return ceil(self.requests_per_second / self.given.requests_per_second)


def table(given: Assumptions | None = None) -> str:
    """Return the table, which has a row for each number of organizations."""
    rows = [
        (
            "| organizations | events a day | requests a day | requests/s | read a day"
            " | stored a year | pods at a time | token owners |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    for organizations in (10, 1_000, 10_000):
        load = Load(organizations, given or Assumptions())
        rows.append(
            f"| {organizations:,} | {load.events:,} | {load.requests:,}"
            f" | {load.requests_per_second:.2f} | {load.downloaded_gigabytes:,.1f} GB"
            f" | {load.stored_gigabytes:,.1f} GB | {load.pods:,} | {load.token_owners:,} |"
        )
    return "\n".join(rows) + "\n"
