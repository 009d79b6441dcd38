"""The events of a day in UTC."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from tap_audit_events import AuditEvents


@dataclass(frozen=True)
class Day:
    """A day, or the part of a day that has passed.

    Attributes:
        start: the midnight at which the day begins, inclusive.
        until: the next midnight, exclusive; for a day that has not ended, the time of the export.
    """

    start: datetime
    until: datetime

    @classmethod
    def of(cls, key: str, now: datetime) -> "Day":
        """Return the part of a day that has passed; `key` is the key of its partition."""
        start = datetime.fromisoformat(key).replace(tzinfo=UTC)
        now = max(start, now.replace(microsecond=0))
        return cls(start, min(start + timedelta(days=1), now))

    def batches(self, log: AuditEvents) -> Iterator[pa.RecordBatch]:
        """Return the day's events as Arrow record batches.

        Both bounds of a request are inclusive (interface.md 4.1), and times may have any number of
        digits, so no end time includes exactly the day. Therefore the range ends with the next
        midnight, and events exactly at midnight are dropped. `occurred_at` is cut to microseconds
        and never rounded up, so it is before midnight if the exact time is.
        """
        midnight = pa.scalar(self.until, pa.timestamp("us", "UTC"))
        with closing(log.pages(start=self.start, end=self.until)) as pages:
            for page in pages:
                batch = page.arrow()
                yield batch.filter(pc.less(batch.column("occurred_at"), midnight))
