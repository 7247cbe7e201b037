"""Where the elements of an SVG are: their boxes in user units of the whole picture."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import cos, radians, sin
from typing import Final
from xml.etree.ElementTree import Element, fromstring

from collector.rendering.letters import width_of

SVG: Final = "{http://www.w3.org/2000/svg}"
_TRANSLATE: Final = re.compile(r"translate\(([-\d.]+),([-\d.]+)\)")
_ROTATE: Final = re.compile(r"rotate\(([-\d.]+)\)")
_COMMAND: Final = re.compile(r"([a-zA-Z])([^a-zA-Z]*)")
_NUMBER: Final = re.compile(r"-?\d*\.?\d+")
_WIDTHS: Final = {"m": 2, "l": 2, "h": 1, "v": 1, "a": 7, "z": 0}


@dataclass(frozen=True)
class Box:
    """The box around an element, and the element."""

    left: float
    top: float
    right: float
    foot: float
    element: Element

    def overlaps(self, other: Box, slack: float = 0.0) -> bool:
        """Return whether the boxes share more than *slack* user units each way."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.foot, other.foot) - max(self.top, other.top)
        return across > slack and down > slack


def parsed(picture: str) -> Element:
    """Return the root of *picture*, which must be well-formed."""
    return fromstring(picture)  # noqa: S314  # written by the code under test: no bomb


def of_class(root: Element, name: str) -> list[Element]:
    """Return the elements of a class, in order."""
    return [e for e in root.iter() if name in (e.get("class") or "").split()]


def tag(element: Element) -> str:
    """Return the tag without its namespace."""
    return element.tag.removeprefix(SVG)


def view(root: Element) -> tuple[float, float]:
    """Return width and height of the viewBox."""
    left, top, width, height = map(float, (root.get("viewBox") or "").split())
    assert (left, top) == (0, 0)
    return width, height


def boxes(root: Element) -> Iterator[Box]:
    """Yield the box of everything that is drawn; texts as wide as the charts take them to be."""
    yield from _boxes(root, 0.0, 0.0, "start", 12.0)


def _boxes(node: Element, x: float, y: float, anchor: str, size: float) -> Iterator[Box]:
    moved = _TRANSLATE.search(node.get("transform") or "")
    if moved:
        x, y = x + float(moved[1]), y + float(moved[2])
    anchor = node.get("text-anchor", anchor)
    size = float(node.get("font-size", size))
    found = _own(node, anchor, size)
    if found:
        yield Box(found[0] + x, found[1] + y, found[2] + x, found[3] + y, node)
    for child in node:
        yield from _boxes(child, x, y, anchor, size)


def _own(node: Element, anchor: str, size: float) -> tuple[float, float, float, float] | None:
    kind = tag(node)
    if kind == "rect":
        left, top = _at(node, "x"), _at(node, "y")
        return left, top, left + _at(node, "width"), top + _at(node, "height")
    if kind == "circle":
        x, y, r = _at(node, "cx"), _at(node, "cy"), _at(node, "r")
        return x - r, y - r, x + r, y + r
    if kind == "line":
        xs, ys = (_at(node, "x1"), _at(node, "x2")), (_at(node, "y1"), _at(node, "y2"))
        return min(xs), min(ys), max(xs), max(ys)
    if kind == "path" and node.get("d"):
        places = list(path_points(node.get("d") or ""))
        xs2, ys2 = [p[0] for p in places], [p[1] for p in places]
        return min(xs2), min(ys2), max(xs2), max(ys2)
    return _text(node, anchor, size) if kind == "text" else None


def _text(node: Element, anchor: str, size: float) -> tuple[float, float, float, float]:
    wide = width_of(node.text or "", size)
    left, foot = _at(node, "x"), _at(node, "y")
    turned = _ROTATE.search(node.get("transform") or "")
    if turned:
        angle = radians(-float(turned[1]))
        return 0.0, -wide * sin(angle) - size * cos(angle), wide * cos(angle), size * 0.3
    left -= {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return left, foot - 0.8 * size, left + wide, foot + 0.2 * size


def path_points(path: str) -> Iterator[tuple[float, float]]:
    """Yield the points that *path* goes through; arcs by their ends."""
    x = y = start_x = start_y = 0.0
    for command, rest in _COMMAND.findall(path):
        kind, relative = command.lower(), command.islower()
        numbers = [float(number) for number in _NUMBER.findall(rest)]
        if kind == "z":
            x, y = start_x, start_y
        width = _WIDTHS[kind]
        for i in range(0, len(numbers), width or 1):
            part = numbers[i : i + width]
            dx, dy = x if relative else 0.0, y if relative else 0.0
            if kind in "mla":
                x, y = part[-2] + dx, part[-1] + dy
            elif kind == "h":
                x = part[0] + dx
            elif kind == "v":
                y = part[0] + dy
            if kind == "m":
                start_x, start_y = x, y
            yield x, y


def _at(node: Element, name: str) -> float:
    return float(node.get(name, 0))
