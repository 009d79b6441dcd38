"""Draws a calendar: a row for each month, a cell for each day, uncovered time hatched."""

from __future__ import annotations

import html
import io
import re
from calendar import month_abbr, monthrange
from datetime import date, datetime
from itertools import pairwise
from math import log10
from typing import Any, Final

from tap_audit_events.cli.proof.calendar import Calendar
from tap_audit_events.errors.exceptions import missing_extra

try:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
except ImportError:
    raise missing_extra("matplotlib", "report") from None

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

_DRAWN: Final = {name: f"#{n:02x}fe{n:02x}" for n, name in enumerate(_COLORS, start=1)}
"""The color that is drawn for each name, until `_with_style` replaces it by a variable."""

_LEVELS: Final = 4
_RC: Final = {
    "svg.fonttype": "none",
    "svg.hashsalt": "calendar",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "hatch.linewidth": 1.1,
}
_LISTED_GAPS: Final = 200


def svg_picture(calendar: Calendar, *, has_title: bool = True) -> str:
    """The calendar as an SVG file, readable on light and on dark pages."""
    with mpl.rc_context(_RC):
        figure = Figure(figsize=(11.2, 5.3))
        FigureCanvasSVG(figure)
        axes = figure.add_axes((0.06, 0.14, 0.925, 0.7))
        _draw_days(axes, calendar)
        _draw_legend(figure, calendar)
        if has_title:
            style = {"size": 13, "weight": "bold", "color": _DRAWN["text"]}
            figure.text(0.015, 0.95, _title(calendar), **style)
        figure.text(0.015, 0.905, _subtitle(calendar), color=_DRAWN["text"])
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    return _with_style(text.getvalue(), calendar)


def html_page(calendar: Calendar) -> str:
    """The calendar as a page: the picture, and what it shows as text."""
    picture = svg_picture(calendar, has_title=False)
    picture = picture[picture.index("<svg") :]
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


def _draw_days(axes: Any, calendar: Calendar) -> None:
    axes.set(xlim=(0.4, 31.6), ylim=(12.6, 0.4), facecolor="none")
    axes.set_xticks(range(1, 32))
    axes.set_yticks(range(1, 13), [month_abbr[month] for month in range(1, 13)])
    axes.tick_params(length=0, colors=_DRAWN["text"], top=True, labeltop=True, bottom=False,
                     labelbottom=False, pad=2)  # fmt: skip
    for spine in axes.spines.values():
        spine.set_visible(False)
    most = max(calendar.events.values(), default=0)
    for month in range(1, 13):
        for day in range(1, monthrange(calendar.year, month)[1] + 1):
            _draw_day(axes, calendar, date(calendar.year, month, day), most)


def _draw_day(axes: Any, calendar: Calendar, day: date, most: int) -> None:
    left, top = day.day - 0.45, day.month - 0.42
    events = calendar.events.get(day, 0)
    is_future = datetime.combine(day, datetime.min.time()) >= calendar.until
    fill = _DRAWN[_level(events, most)] if events or not is_future else "none"
    cell = Rectangle((left, top), 0.9, 0.84, facecolor=fill, edgecolor=_DRAWN["edge"], lw=0.6)
    cell.set_gid(f"day-{day}")
    axes.add_patch(cell)
    for start, end in calendar.gaps_of(day):
        place = (left + 0.9 * start, top), 0.9 * (end - start), 0.84
        axes.add_patch(Rectangle(*place, facecolor=_DRAWN["page"], alpha=0.65, lw=0))
        hatch = Rectangle(*place, fill=False, hatch="//////", edgecolor=_DRAWN["gap"], lw=0.8)
        hatch.set_gid(f"gap-{day}-{start:.4f}")
        axes.add_patch(hatch)


def _draw_legend(figure: Any, calendar: Calendar) -> None:
    axes = figure.add_axes((0.06, 0.015, 0.925, 0.09))
    axes.set(xlim=(0.4, 31.6), ylim=(1, 0))
    axes.axis("off")
    left = 0.55
    for name, label in _legend(max(calendar.events.values(), default=0)):
        if name == "gap" and not calendar.has_coverage:
            continue
        color = _DRAWN[name]
        look = {"fill": False, "hatch": "//////", "edgecolor": color} if name == "gap" else {
            "facecolor": color, "edgecolor": _DRAWN["edge"]}  # fmt: skip
        axes.add_patch(Rectangle((left, 0.25), 0.9, 0.5, lw=0.8, **look))
        axes.text(left + 1.15, 0.52, label, va="center", color=_DRAWN["text"])
        left += 2 + 0.215 * len(label)


def _legend(most: int) -> list[tuple[str, str]]:
    bounds = [_first_of_level(level, most) for level in range(1, _LEVELS + 2)]
    levels = [
        (str(level), f"{low:,}" if high - low <= 1 else f"{low:,} to {high - 1:,}")
        for level, (low, high) in enumerate(pairwise(bounds), start=1)
        if low < high
    ]
    return [("none", "no events"), *levels, ("gap", "not covered")]


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


# Text


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


# Colors of light and dark pages


def _with_style(svg: str, calendar: Calendar) -> str:
    """The picture with a title, a description, and a style sheet in place of its colors."""
    for name, drawn in _DRAWN.items():
        svg = svg.replace(drawn, f"var(--{name})")
    light, dark = (
        "; ".join(f"--{name}: {colors[which]}" for name, colors in _COLORS.items())
        for which in (0, 1)
    )
    style = (
        f"<style>svg {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}\n"
        ".page { fill: var(--page) }</style>"
    )
    described = (
        f'<title id="calendar-title">{html.escape(_title(calendar))}</title>\n'
        f'<desc id="calendar-description">{html.escape(_subtitle(calendar))}</desc>\n'
        f'{style}\n<rect class="page" width="100%" height="100%"/>'
    )
    return re.sub(
        r"<svg ([^>]*)>",
        lambda found: (
            f'<svg role="img" aria-labelledby="calendar-title calendar-description" {found[1]}>\n'
            f"{described}"
        ),
        svg,
        count=1,
    )
