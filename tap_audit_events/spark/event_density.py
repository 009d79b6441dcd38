"""Estimates how many events lie where, from the first events after a few times."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from tap_audit_events.events.instants import EARLIEST, Instant, later, microseconds

_DAY: Final = 86_400


def to_seconds(instant: Instant) -> int:
    """The whole seconds since the start of the year 1."""
    return microseconds(instant) // 1_000_000


def from_seconds(seconds: int) -> Instant:
    return later(EARLIEST, seconds=seconds)


class _Sample(NamedTuple):
    """The events from a time on, as far as they were seen.

    Attributes:
        start: the time, in seconds as all times here.
        end: the time of the last of them, or the end of the range if no other follows.
        events: how many they are.
    """

    start: int
    end: int
    events: int

    @property
    def density(self) -> float:
        return self.events / max(1, self.end - self.start)


class EventDensity:
    """Events per second in a range, learned from samples.

    Between two samples, the density is the mean of theirs; after the last one, it is its own, and
    so it is after the range. Most events occur in office hours, so samples lie at midnight if they
    are days apart: they can then be compared. The first one cannot, so the second counts for both.

    Args:
        start: the time of the oldest event, in seconds.
        end: the second after the newest event.
        until: the end of the range; there are no events from `end` on.
    """

    def __init__(self, start: int, end: int, until: int) -> None:
        self.start, self.end, self._until = start, end, max(end, until)
        self._samples: list[_Sample] = []

    def add(self, start: int, instants: Sequence[Instant], *, is_all: bool) -> None:
        """Add the first events from a time on, in order; `is_all` if no other follows."""
        end = self.end if is_all else max(start + 1, to_seconds(instants[-1]))
        insort(self._samples, _Sample(start, max(start, end), len(instants)))

    def next_sample(self) -> int | None:
        """The time at which a sample tells most; None if the samples cover the range."""
        best, found = 0.0, None
        for sample, following in self._gaps():
            gap = following - sample.end
            weight = gap * self.events_between(sample.end, following)
            middle = sample.end + gap // 2
            if gap > 2 * _DAY:
                middle = round(middle / _DAY) * _DAY
            if weight > best and sample.end < middle < following:
                best, found = weight, middle
        return found

    def events_between(self, start: int, end: int) -> float:
        """The events to expect between two times."""
        return max(0.0, self._before(end) - self._before(start))

    def cuts(self, start: int, end: int, pieces: int) -> list[int]:
        """The times, in ascending order, that cut a range into pieces of about as many events."""
        first, all_events = self._before(start), self.events_between(start, end)
        marks = [self.time_of(first + all_events * each / pieces) for each in range(1, pieces)]
        return sorted({each for each in marks if start < each < end})

    def end_of(self, start: int, events: float) -> int:
        """The time until which so many events are expected after a time, at least a second."""
        return max(start + 1, self.time_of(self._before(start) + events))

    def time_of(self, events: float) -> int:
        """The time before which so many events are expected since the oldest one."""
        points = self._points()
        for (start, before), (end, after) in pairwise(points):
            if events <= after and after > before:
                return start + int((end - start) * max(0.0, events - before) / (after - before))
        last, before = points[-1]
        return last + int((events - before) / self._last_density)

    def _gaps(self) -> list[tuple[_Sample, int]]:
        """Each sample, and the time from which the next one knows more."""
        following = [*(each.start for each in self._samples[1:]), self.end]
        return list(zip(self._samples, following, strict=True))

    def _points(self) -> list[tuple[int, float]]:
        """Times, and how many events are expected before each."""
        before, points = 0.0, [(self.start, 0.0)]
        densities = [*(each.density for each in self._samples), self._last_density]
        densities[0] = densities[min(1, len(self._samples))]  # it begins at the oldest event
        for number, (sample, following) in enumerate(self._gaps()):
            end = min(sample.end, following)
            before += sample.density * (end - sample.start)
            points.append((end, before))
            if end < following:
                before += (following - end) * (densities[number] + densities[number + 1]) / 2
                points.append((following, before))
        points.append((self._until, before))
        return points

    def _before(self, time: int) -> float:
        points = self._points()
        place = bisect_right(points, time, key=lambda point: point[0])
        if place == 0:
            return 0.0
        start, before = points[place - 1]
        if place == len(points):
            return before + self._last_density * (time - start)
        end, after = points[place]
        return before + (after - before) * (time - start) / (end - start)

    @property
    def _last_density(self) -> float:
        """The density of the last sample with events."""
        return next(each.density for each in reversed(self._samples) if each.events)
