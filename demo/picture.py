"""A picture of the loaded events: a column for each day, by action type, as SVG."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

WIDTH: Final = 840
HEIGHT: Final = 340
LEFT: Final = 52
RIGHT: Final = 230
TOP: Final = 44
BOTTOM: Final = 32
GAP: Final = 3
MAX_TYPES: Final = 6
GRID_LINES: Final = 4
OTHER: Final = "other types"

STYLE: Final = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px }
.axis { fill: #59636e }
line { stroke: #d1d9e0 }
.c0 { fill: #0969da } .c1 { fill: #1a7f37 } .c2 { fill: #bf8700 }
.c3 { fill: #8250df } .c4 { fill: #cf222e } .c5 { fill: #1b7c83 } .c6 { fill: #8c959f }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .axis { fill: #9198a1 }
  line { stroke: #3d444d }
  .c0 { fill: #4493f8 } .c1 { fill: #3fb950 } .c2 { fill: #d29922 }
  .c3 { fill: #ab7df8 } .c4 { fill: #f85149 } .c5 { fill: #39c5cf } .c6 { fill: #656c76 }
}
"""


def picture(rows: Iterable[tuple[date, str, int]]) -> str:
    """The picture of how many events there are of each day and action type."""
    counts: dict[date, Counter[str]] = {}
    for day, action_type, count in rows:
        counts.setdefault(day, Counter())[action_type] += count
    names = _most_frequent(counts.values())
    days = {day: _grouped(counts[day], names) for day in sorted(counts)}
    title = "Events a day, by action type"
    size = {"width": str(WIDTH), "height": str(HEIGHT)}
    svg = Element(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {WIDTH} {HEIGHT}", **size},
        role="img",
    )
    SubElement(svg, "title").text = title
    SubElement(svg, "style").text = STYLE
    _text(svg, title, 0, 20, **{"class": "title"})
    most = _round_up(max((sum(each.values()) for each in days.values()), default=1))
    _grid(svg, most)
    _columns(svg, days, names, most)
    _legend(svg, names)
    indent(svg)
    return tostring(svg, encoding="unicode") + "\n"


def _most_frequent(counts: Iterable[Counter[str]]) -> list[str]:
    total: Counter[str] = sum(counts, Counter())
    names = [name for name, _ in total.most_common(MAX_TYPES)]
    return [*names, OTHER] if len(total) > MAX_TYPES else names


def _grouped(counts: Counter[str], names: Sequence[str]) -> Counter[str]:
    grouped: Counter[str] = Counter()
    for name, count in counts.items():
        grouped[name if name in names else OTHER] += count
    return grouped


def _round_up(count: int) -> int:
    """A round number for the top of the axis, divisible by the lines of the grid."""
    digit = int("1" + "0" * (len(str(count)) - 1))
    step = max(1, digit // 5) * GRID_LINES
    return -(-count // step) * step


def _grid(svg: Element, most: int) -> None:
    for number in range(GRID_LINES + 1):
        y = _y(most * number / GRID_LINES, most)
        ends = {"x1": str(LEFT), "x2": str(WIDTH - RIGHT), "y1": f"{y:.1f}", "y2": f"{y:.1f}"}
        SubElement(svg, "line", ends)
        label = f"{most * number // GRID_LINES:,}"
        _text(svg, label, LEFT - 8, y + 4, **{"class": "axis", "text-anchor": "end"})


def _columns(
    svg: Element, days: Mapping[date, Counter[str]], names: Sequence[str], most: int
) -> None:
    width = (WIDTH - LEFT - RIGHT) / max(1, len(days))
    for position, (day, counts) in enumerate(days.items()):
        x, below = LEFT + position * width, 0
        for color, name in enumerate(names):
            top, bottom = _y(below + counts[name], most), _y(below, most)
            place = {"x": f"{x + GAP / 2:.1f}", "y": f"{top:.1f}", "class": f"c{color}"}
            size = {"width": f"{width - GAP:.1f}", "height": f"{bottom - top:.1f}"}
            bar = SubElement(svg, "rect", place | size)
            SubElement(bar, "title").text = f"{day}: {counts[name]:,} {name}"
            below += counts[name]
        if position % 2 == 0:
            middle = {"class": "axis", "text-anchor": "middle"}
            _text(svg, f"{day:%m-%d}", x + width / 2, HEIGHT - BOTTOM + 18, **middle)


def _legend(svg: Element, names: Sequence[str]) -> None:
    for color, name in enumerate(names):
        x, y = WIDTH - RIGHT + 16, TOP + 22 * color
        place = {"x": str(x), "y": str(y), "width": "12", "height": "12", "rx": "2"}
        SubElement(svg, "rect", {**place, "class": f"c{color}"})
        _text(svg, name, x + 20, y + 11)


def _y(count: float, most: int) -> float:
    return HEIGHT - BOTTOM - count / most * (HEIGHT - TOP - BOTTOM)


def _text(svg: Element, text: str, x: float, y: float, **more: str) -> None:
    SubElement(svg, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", **more}).text = text
