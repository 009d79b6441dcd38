"""Bar charts as SVG, readable on light and on dark pages."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

WIDTH: Final = 840
LABEL_WIDTH: Final = 370
VALUE_WIDTH: Final = 90
ROW_HEIGHT: Final = 28
BAR_HEIGHT: Final = 18
TOP: Final = 44

STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px }
rect { fill: #8c959f }
.own { fill: #0969da }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  rect { fill: #7d8590 }
  .own { fill: #4493f8 }
}
"""


@dataclass(frozen=True)
class Bar:
    """One row; a row of this package is `own` and has another color."""

    label: str
    value: float
    shown: str
    own: bool


def bar_chart(title: str, rows: Iterable[Bar]) -> str:
    """Draw the bars one below the other; the longest has the whole width."""
    bars = list(rows)
    height = TOP + ROW_HEIGHT * len(bars) + 8
    svg = Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        width=str(WIDTH),
        height=str(height),
        role="img",
    )
    SubElement(svg, "title").text = title
    SubElement(svg, "style").text = STYLE
    _text(svg, title, 0, 20, **{"class": "title"})
    longest = max((bar.value for bar in bars), default=1)
    for number, bar in enumerate(bars):
        _row(svg, bar, TOP + ROW_HEIGHT * number, bar.value / longest)
    indent(svg)
    return tostring(svg, encoding="unicode") + "\n"


def _row(svg: Element, bar: Bar, top: int, share: float) -> None:
    width = max(1.0, share * (WIDTH - LABEL_WIDTH - VALUE_WIDTH))
    middle = top + BAR_HEIGHT - 4
    _text(svg, bar.label, LABEL_WIDTH - 10, middle, **{"text-anchor": "end"})
    attributes = {"class": "own"} if bar.own else {}
    position = {"x": str(LABEL_WIDTH), "y": str(top), "width": f"{width:.1f}"}
    SubElement(svg, "rect", {**position, "height": str(BAR_HEIGHT), "rx": "2", **attributes})
    _text(svg, bar.shown, LABEL_WIDTH + width + 8, middle)


def _text(svg: Element, text: str, x: float, y: float, **more: str) -> None:
    SubElement(svg, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", **more}).text = text
