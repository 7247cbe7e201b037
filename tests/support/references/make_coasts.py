"""Make ``collector/rendering/coasts.txt`` from a TopoJSON file of the land.

    npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz
    python -m tests.support.references.make_coasts package/land-110m.json

Source: Natural Earth 4.1, 1:110m land, public domain; the TopoJSON is that of world-atlas.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from collector.rendering import coasts

_FILE: Final = Path(coasts.__file__).with_suffix(".txt")
_TOLERANCE: Final = 0.5  # of the file's unit: a point is left out if the line passes so near
_SOUTH: Final = -85  # degrees; land ends there in the source, which is no coast


def lines_of(topology: Mapping[str, Any]) -> Iterator[list[tuple[int, int]]]:
    """Yield the coasts in the file's unit, without the edges of the source's own map."""
    scale, shift = topology["transform"]["scale"], topology["transform"]["translate"]
    for arc in topology["arcs"]:
        x = y = 0
        degrees = []
        for step in arc:
            x, y = x + step[0], y + step[1]
            degrees.append((x * scale[0] + shift[0], y * scale[1] + shift[1]))
        for piece in _without_edges(degrees):
            thinned = _thinned([(a * coasts.PARTS, b * coasts.PARTS) for a, b in piece])
            rounded = [(round(a), round(b)) for a, b in thinned]
            kept = [rounded[0], *(b for a, b in pairwise(rounded) if a != b)]
            if len(kept) > 1:
                yield kept


def _without_edges(points: Sequence[tuple[float, float]]) -> Iterator[list[tuple[float, float]]]:
    piece = [points[0]]
    for start, end in pairwise(points):
        along = all(abs(point[0]) > 179.99 for point in (start, end))
        if along or abs(start[0] - end[0]) > 180 or max(start[1], end[1]) < _SOUTH:
            yield piece
            piece = []
        piece.append(end)
    yield piece


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return *points* without those that the line passes near.  Source: Douglas and Peucker."""
    if len(points) < 3:
        return points
    (ax, ay), (bx, by) = points[0], points[-1]
    long = ((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5
    far = [
        abs((bx - ax) * (ay - y) - (ax - x) * (by - ay)) / long
        if long
        else ((x - ax) ** 2 + (y - ay) ** 2) ** 0.5
        for x, y in points[1:-1]
    ]
    most = max(far)
    if most <= _TOLERANCE:
        return [points[0], points[-1]]
    middle = far.index(most) + 1
    return _thinned(points[: middle + 1])[:-1] + _thinned(points[middle:])


def main(path: str) -> None:
    """Write the file."""
    texts = []
    for line in lines_of(json.loads(Path(path).read_text("utf-8"))):
        steps = [line[0], *((b[0] - a[0], b[1] - a[1]) for a, b in pairwise(line))]
        texts.append(" ".join(f"{x} {y}" for x, y in steps))
    _FILE.write_text("\n".join(texts) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1])
