"""Draws a calendar: a row for each month, a cell for each day, uncovered time hatched."""

from __future__ import annotations

import html
from calendar import month_abbr, monthrange
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import Final

from tap_audit_events.cli.proof.calendar import Calendar
from tap_audit_events.reporting.progress import events_text

_COLORS: Final = {
    "text": ("#1f2328", "#e6edf3"),
    "page": ("#ffffff", "#0d1117"),
    "edge": ("#d0d7de", "#30363d"),
    "none": ("#f0f2f4", "#1c222a"),
    "1": ("#b6d9fb", "#0c2d5a"),
    "2": ("#6cb2f5", "#114a94"),
    "3": ("#2f81d6", "#2f7be0"),
    "4": ("#0a4a94", "#8cc2ff"),
    "gap": ("#cf222e", "#ff7b72"),
}
"""The color of each part of the picture: on a light page, and on a dark one."""

_LEVELS: Final = 4
_LISTED_GAPS: Final = 200
_HATCH: Final = "url(#hatch)"
_LEFT, _TOP, _STEP, _CELL = 48, 84, 32, 28
_WIDTH, _HEIGHT = _LEFT + 31 * _STEP + 12, _TOP + 12 * _STEP + 52

_LIGHT, _DARK = (
    "; ".join(f"--c{name}: {colors[which]}" for name, colors in _COLORS.items()) for which in (0, 1)
)
_STYLE: Final = (
    f"svg {{ {_LIGHT} }}\n@media (prefers-color-scheme: dark) {{ svg {{ {_DARK} }} }}\n"
    "text { fill: var(--ctext) }"
)


def svg_picture(calendar: Calendar, *, has_title: bool = True) -> str:
    """The calendar as an SVG file, readable on light and on dark pages."""
    title, subtitle = _title(calendar), html.escape(_subtitle(calendar))
    drawn = "\n".join([
        _text(14, 60, subtitle),
        *([_text(14, 32, title, 'font-size="18" font-weight="bold"')] if has_title else []),
        *(_text(_LEFT + 7 + _STEP * n, _TOP - 6, f"{n + 1}") for n in range(31)),
        *_days(calendar),
        *_legend(calendar),
    ])  # fmt: skip
    return f"""<svg role="img" aria-labelledby="calendar-title calendar-description"
 xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"
 font-family="DejaVu Sans, sans-serif" font-size="13">
<title id="calendar-title">{title}</title>
<desc id="calendar-description">{subtitle}</desc>
<style>{_STYLE}</style>
<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)">
<rect width="6" height="6" fill="var(--cpage)" opacity="0.65"/>
<rect width="1.6" height="6" fill="var(--cgap)"/></pattern>
<rect width="100%" height="100%" fill="var(--cpage)"/>
{drawn}
</svg>
"""


def html_page(calendar: Calendar) -> str:
    """The calendar as a page: the picture, and what it shows as text."""
    title = _title(calendar)
    light, dark = zip(_COLORS["page"], _COLORS["text"], strict=True)
    months = Counter[int]()
    for day, events in calendar.events.items():
        months[day.month] += events
    by_month = [(f"{calendar.year}-{month:02}", f"{months[month]:,}") for month in range(1, 13)]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 1120px; margin: 2rem auto; padding: 0 1rem;
  background: {light[0]}; color: {light[1]} }}
svg {{ width: 100%; height: auto }}
table {{ border-collapse: collapse }}
th, td {{ text-align: left; padding: 0.2rem 1.5rem 0.2rem 0; font-variant-numeric: tabular-nums }}
@media (prefers-color-scheme: dark) {{ body {{ background: {dark[0]}; color: {dark[1]} }} }}
</style>
</head>
<body>
<h1>{title}</h1>
{svg_picture(calendar, has_title=False)}
<h2>Time that is not covered</h2>
{_gaps(calendar)}
<h2>Events by month</h2>
{_table([("month", "events"), *by_month])}
</body>
</html>
"""


def _days(calendar: Calendar) -> Iterator[str]:
    levels = _levels(calendar)
    for month in range(1, 13):
        top = _TOP + _STEP * (month - 1)
        yield _text(14, top + 19, month_abbr[month])
        for number in range(1, monthrange(calendar.year, month)[1] + 1):
            day, left = date(calendar.year, month, number), _LEFT + _STEP * (number - 1)
            events = calendar.events.get(day, 0)
            color = "none"  # in the future
            if events or datetime.combine(day, datetime.min.time()) < calendar.until:
                level = max((level for low, level in levels.items() if low <= events), default=0)
                color = _color(level)
            yield _cell(left, top, _CELL, color, f"{day}: {events_text(events)}")
            for start, end in calendar.gaps_of(day):
                gap_left, width = left + _CELL * start, _CELL * (end - start)
                yield _cell(gap_left, top, width, _HATCH, f"{day}: not covered")


def _legend(calendar: Calendar) -> Iterator[str]:
    levels = _levels(calendar)
    cells = [(_color(0), "no events")]
    for low, end in pairwise([*levels, max(calendar.events.values(), default=0) + 1]):
        if low < end:
            label = f"{low:,}" if end - low == 1 else f"{low:,} to {end - 1:,}"
            cells.append((_color(levels[low]), label))
    if calendar.gaps is not None:
        cells.append((_HATCH, "not covered"))
    left, top = _LEFT, _TOP + 12 * _STEP + 14
    for color, label in cells:
        yield _cell(left, top, _CELL, color, label)
        yield _text(left + _CELL + 8, top + 19, label)
        left += _CELL + 34 + 8 * len(label)


def _levels(calendar: Calendar) -> dict[int, int]:
    """The levels by their fewest events; from level to level, they grow by the same factor."""
    most = max(calendar.events.values(), default=1)
    levels = range(1, _LEVELS + 1)
    return {max(1, round(most ** ((level - 1) / _LEVELS))): level for level in levels}


def _color(level: int) -> str:
    return f"var(--c{level or 'none'})"


def _cell(left: float, top: float, width: float, fill: str, title: str) -> str:
    edge = "gap" if fill == _HATCH else "edge"
    return (
        f'<rect x="{left:.2f}" y="{top}" width="{width:.2f}" height="{_CELL}" fill="{fill}"'
        f' stroke="var(--c{edge})"><title>{title}</title></rect>'
    )


def _text(left: float, top: float, text: str, more: str = "") -> str:
    return f'<text x="{left}" y="{top}" {more}>{text}</text>'


def _title(calendar: Calendar) -> str:
    return f"Audit events in {calendar.year}"


def _subtitle(calendar: Calendar) -> str:
    total = events_text(sum(calendar.events.values()))
    if calendar.organizations > 1:  # 0 without coverage records
        total += f" of {calendar.organizations} organizations"
    if calendar.gaps is None:
        return f"{total}; {calendar.note}"
    if calendar.note:
        total += f" ({calendar.note})"
    until = f"until {calendar.until:%Y-%m-%d %H:%M} UTC"
    if not calendar.gaps:
        return f"{total}; no time is missing {until}"
    hours = sum((end - start).total_seconds() for start, end in calendar.gaps) / 3600
    gaps = f"{len(calendar.gaps)} gap{'s' if len(calendar.gaps) > 1 else ''}"
    return f"{total}; not covered: {gaps}, {hours:,.1f} hours {until}"


def _gaps(calendar: Calendar) -> str:
    if calendar.gaps is None:
        return "<p>Not known: there are no coverage records.</p>"
    if not calendar.gaps:
        return f"<p>None until {calendar.until:%Y-%m-%d %H:%M} UTC.</p>"
    times = [
        tuple(f"{time:%Y-%m-%d %H:%M:%S}" for time in gap) for gap in calendar.gaps[:_LISTED_GAPS]
    ]
    more = len(calendar.gaps) - _LISTED_GAPS
    note = f"<p>And {more:,} more.</p>" if more > 0 else ""
    return _table([("from (UTC)", "until (UTC)"), *times]) + note


def _table(rows: Sequence[Sequence[str]]) -> str:
    tags = ["th", *["td"] * (len(rows) - 1)]
    lines = (
        "".join(f"<{tag}>{text}</{tag}>" for text in row)
        for tag, row in zip(tags, rows, strict=True)
    )
    return "<table>\n" + "".join(f"<tr>{line}</tr>\n" for line in lines) + "</table>"
