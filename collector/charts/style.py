"""How each class of mark is painted: as attributes, and as CSS that follows light and dark.

Pages forbid inline styles, so each mark carries its light colours as presentation attributes and a
class; the style sheet overrides nothing but colours.  ``CSS`` is the style sheet of pages, which
serve it as a file, and the one within a chart that stands alone.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from .palette import DARK, LIGHT, SERIES, STEPS, blended, contrast

FONT: Final = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
TITLE, TEXT, SMALL = 15, 12, 11  # font sizes in user units

_TEXTS: Final = {
    "title": {"fill": "@ink", "font-size": str(TITLE), "font-weight": "600"},
    "subtitle": {"fill": "@soft", "font-size": str(TEXT)},
    "label": {"fill": "@ink", "font-size": str(TEXT)},
    "value": {"fill": "@ink", "font-size": str(TEXT), "font-weight": "600"},
    "margin": {"fill": "@soft", "font-size": str(TEXT)},
    "reason": {
        "fill": "@soft",
        "font-size": str(TEXT),
        "font-style": "italic",
        "stroke": "@paper",
        "stroke-width": "3",
        "paint-order": "stroke",
    },
    "tick": {"fill": "@soft", "font-size": str(SMALL)},
    "note": {"fill": "@soft", "font-size": str(SMALL)},
    "aside": {
        "fill": "@soft",
        "font-size": str(SMALL),
        "stroke": "@paper",
        "stroke-width": "3",
        "paint-order": "stroke",
    },
}
_SHAPES: Final = {
    "paper": {"fill": "@paper"},
    "grid": {"stroke": "@faint", "stroke-width": "1"},
    "axis": {"stroke": "@line", "stroke-width": "1"},
    "reference": {"stroke": "@soft", "stroke-width": "1", "stroke-dasharray": "2 3"},
    "bar": {"fill": "@series-1", "fill-opacity": "0.55"},
    "pale": {"fill": "@series-1", "fill-opacity": "0.22"},
    "outline": {"fill": "none", "stroke": "@series-1", "stroke-width": "1.5"},
    "halo": {"fill": "none", "stroke": "@paper", "stroke-width": "3.5"},
    "end": {"stroke": "@series-1", "stroke-width": "2"},
    "whisker": {"fill": "none", "stroke": "@ink", "stroke-width": "1.5"},
    "noise": {"fill": "@soft", "fill-opacity": "0.16"},
    "gap": {"fill": "none", "stroke": "@soft", "stroke-width": "1.25"},
    "hover": {"fill": "none", "stroke": "none", "pointer-events": "all"},
    "empty": {"fill": "none", "stroke": "@line", "stroke-width": "1", "stroke-dasharray": "2 2"},
    "quiet-reach": {"fill": "none", "stroke": "@soft", "stroke-width": "2"},
    "margin-cell": {"fill": "none", "stroke": "@faint", "stroke-width": "1"},
    "quiet": {"fill": "@paper", "stroke": "@soft", "stroke-width": "1.5"},
}
_OF_SERIES: Final = {
    "band": {"fill": "@", "fill-opacity": "0.16"},
    "line": {"fill": "none", "stroke": "@", "stroke-width": "2", "stroke-linejoin": "round"},
    "open": {"fill": "none", "stroke": "@", "stroke-width": "2", "stroke-dasharray": "4 3"},
    "dot": {"fill": "@", "stroke": "@paper", "stroke-width": "1"},
    "ring": {"fill": "@paper", "stroke": "@", "stroke-width": "1.75"},
    "reach": {"fill": "none", "stroke": "@", "stroke-width": "2"},
}
# How much of its colour a cell has: opacity stands for certainty.
CERTAINTY: Final = {"good": 1.0, "fair": 0.62, "poor": 0.3}
_INKS: Final = {"k": "#000000", "w": "#ffffff"}


def _looks() -> dict[str, dict[str, str]]:
    looks = {**_TEXTS, **_SHAPES}
    for number in range(1, SERIES + 1):
        for name, look in _OF_SERIES.items():
            looks[f"{name}-{number}"] = {
                key: f"@series-{number}" if value == "@" else value for key, value in look.items()
            }
    for number in range(1, STEPS + 1):
        looks[f"cell-{number}"] = {"fill": f"@step-{number}"}
    return looks


_LOOKS: Final = _looks()


@cache
def paint(name: str) -> dict[str, str]:
    """Return the class of *name* and its presentation attributes, in light colours."""
    look = {
        key.replace("-", "_"): LIGHT[value[1:]] if value.startswith("@") else value
        for key, value in _LOOKS[name].items()
    }
    return {"class_": name, **look}


@cache
def ink_on(step: int, opacity: float) -> dict[str, str]:
    """Return the paint of text on the colour *step* at *opacity*: black or white in each theme."""
    light, dark = (_ink(theme, step, opacity) for theme in (LIGHT, DARK))
    return {"class_": f"on-{light}{dark}", "fill": _INKS[light]}


def _ink(theme: dict[str, str], step: int, opacity: float) -> str:
    ground = blended(theme[f"step-{step}"], theme["paper"], opacity)
    return max(_INKS, key=lambda ink: contrast(_INKS[ink], ground))


def _css() -> str:
    """Return the style sheet.  It holds none of < > &, so that it is the same in XML and HTML."""
    rules = [
        f".chart{{display:block;width:100%;height:auto;font-variant-numeric:tabular-nums;"
        f"break-inside:avoid;print-color-adjust:exact;-webkit-print-color-adjust:exact;"
        f"{_variables(LIGHT)}}}",
        f"@media (prefers-color-scheme:dark){{.chart{{{_variables(DARK)}{_inks(1)}}}}}",
        f":where([data-theme=light]) .chart{{{_variables(LIGHT)}{_inks(0)}}}",
        f":where([data-theme=dark]) .chart{{{_variables(DARK)}{_inks(1)}}}",
        f"@media print{{.chart{{{_variables(LIGHT)}{_inks(0)}}}}}",
    ]
    for name, look in _LOOKS.items():
        colours = [
            f"{key}:var(--chart-{value[1:]})" for key, value in look.items() if value[0] == "@"
        ]
        if colours:
            rules.append(f".chart .{name}{{{';'.join(colours)}}}")
    rules.append(".spark{width:7.5rem;max-width:100%}")
    rules += [
        f".chart .on-{light}{dark}{{fill:var(--chart-on-{light}{dark},{_INKS[light]})}}"
        for light in _INKS
        for dark in _INKS
    ]
    return "\n".join(rules) + "\n"


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--chart-{name}:{colour};" for name, colour in colours.items())


def _inks(theme: int) -> str:
    pairs = [light + dark for light in _INKS for dark in _INKS]
    return "".join(f"--chart-on-{pair}:{_INKS[pair[theme]]};" for pair in pairs)


CSS: Final = _css()
