"""Draws a calendar: a row for each month, a cell for each day, uncovered time hatched."""

from __future__ import annotations

import html
from calendar import month_abbr, monthrange
from collections.abc import Iterator
from datetime import date, datetime
from itertools import pairwise
from math import log10
from typing import Final

from tap_audit_events.cli.proof.calendar import Calendar

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
    title, subtitle = html.escape(_title(calendar)), html.escape(_subtitle(calendar))
    parts = [_text(14, 60, subtitle)]
    if has_title:
        parts.append(_text(14, 32, title, 'font-size="18" font-weight="bold"'))
    parts += [
        *(_text(_LEFT + 7 + _STEP * n, _TOP - 6, f"{n + 1}") for n in range(31)),
        *_days(calendar),
        *_legend_parts(calendar),
    ]
    drawn = "\n".join(parts)
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
    picture = svg_picture(calendar, has_title=False)
    title = html.escape(_title(calendar))
    light, dark = zip(_COLORS["page"], _COLORS["text"], strict=True)
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
{picture}
<h2>Time that is not covered</h2>
{_gap_table(calendar)}
<h2>Events by month</h2>
{_month_table(calendar)}
</body>
</html>
"""


def _days(calendar: Calendar) -> Iterator[str]:
    most = max(calendar.events.values(), default=0)
    for month in range(1, 13):
        top = _TOP + _STEP * (month - 1)
        yield _text(14, top + 19, month_abbr[month])
        for number in range(1, monthrange(calendar.year, month)[1] + 1):
            day, left = date(calendar.year, month, number), _LEFT + _STEP * (number - 1)
            events = calendar.events.get(day, 0)
            if events or datetime.combine(day, datetime.min.time()) < calendar.until:
                color = f"var(--c{_level(events, most)})"
            else:
                color = "none"  # in the future
            yield _cell(left, top, _CELL, color, f"{day}: {events:,} events")
            for start, end in calendar.gaps_of(day):
                gap_left, width = left + _CELL * start, _CELL * (end - start)
                yield _cell(gap_left, top, width, _HATCH, f"{day}: not covered")


def _legend_parts(calendar: Calendar) -> Iterator[str]:
    left, top = _LEFT, _TOP + 12 * _STEP + 14
    colors = [
        (f"var(--c{name})", label)
        for name, label in _legend(max(calendar.events.values(), default=0))
    ]
    for color, label in colors + [(_HATCH, "not covered")] * calendar.has_coverage:
        yield _cell(left, top, _CELL, color, label)
        yield _text(left + _CELL + 8, top + 19, label)
        left += _CELL + 34 + 8 * len(label)


def _cell(left: float, top: float, width: float, fill: str, title: str) -> str:
    edge = "gap" if fill == _HATCH else "edge"
    return (
        f'<rect x="{left:.2f}" y="{top}" width="{width:.2f}" height="{_CELL}" fill="{fill}"'
        f' stroke="var(--c{edge})"><title>{title}</title></rect>'
    )


def _text(left: float, top: float, text: str, more: str = "") -> str:
    return f'<text x="{left}" y="{top}" {more}>{text}</text>'


def _legend(most: int) -> list[tuple[str, str]]:
    bounds = [_first_of_level(level, most) for level in range(1, _LEVELS + 2)]
    levels = [
        (str(level), f"{low:,}" if high - low <= 1 else f"{low:,} to {high - 1:,}")
        for level, (low, high) in enumerate(pairwise(bounds), start=1)
        if low < high
    ]
    return [("none", "no events"), *levels]


def _level(events: int, most: int) -> str:
    if not events:
        return "none"
    levels = range(1, _LEVELS + 1)
    return str(max(level for level in levels if events >= _first_of_level(level, most)))


def _first_of_level(level: int, most: int) -> int:
    """The fewest events of a level; from level to level, they grow by the same factor."""
    if level > _LEVELS:
        return most + 1
    return max(1, round(10 ** (log10(max(most, 1)) * (level - 1) / _LEVELS)))


def _title(calendar: Calendar) -> str:
    return f"Audit events in {calendar.year}"


def _subtitle(calendar: Calendar) -> str:
    total = f"{sum(calendar.events.values()):,} events"
    if calendar.organizations > 1:  # 0 without coverage records
        total += f" of {calendar.organizations} organizations"
    if not calendar.has_coverage:
        return f"{total}; {calendar.note}"
    if calendar.note:
        total += f" ({calendar.note})"
    if not calendar.gaps:
        return f"{total}; no time is missing until {calendar.until:%Y-%m-%d %H:%M} UTC"
    hours = sum((end - start).total_seconds() for start, end in calendar.gaps) / 3600
    missing = f"{len(calendar.gaps)} gap{'s' if len(calendar.gaps) > 1 else ''}, {hours:,.1f} hours"
    return f"{total}; not covered: {missing} until {calendar.until:%Y-%m-%d %H:%M} UTC"


def _gap_table(calendar: Calendar) -> str:
    if not calendar.has_coverage:
        return "<p>Not known: there are no coverage records.</p>"
    if not calendar.gaps:
        return f"<p>None until {calendar.until:%Y-%m-%d %H:%M} UTC.</p>"
    rows = "".join(
        f"<tr><td>{start:%Y-%m-%d %H:%M:%S}</td><td>{end:%Y-%m-%d %H:%M:%S}</td></tr>\n"
        for start, end in calendar.gaps[:_LISTED_GAPS]
    )
    more = len(calendar.gaps) - _LISTED_GAPS
    note = f"<p>And {more:,} more.</p>" if more > 0 else ""
    return f"<table>\n<tr><th>from (UTC)</th><th>until (UTC)</th></tr>\n{rows}</table>{note}"


def _month_table(calendar: Calendar) -> str:
    counts = [0] * 13
    for day, events in calendar.events.items():
        counts[day.month] += events
    rows = "".join(
        f"<tr><td>{calendar.year}-{month:02}</td><td>{counts[month]:,}</td></tr>\n"
        for month in range(1, 13)
    )
    return f"<table>\n<tr><th>month</th><th>events</th></tr>\n{rows}</table>"
