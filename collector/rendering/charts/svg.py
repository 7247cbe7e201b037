"""Elements of SVG, their colours and their style sheet.

Every text and attribute is escaped when it is written, here and only here.  Pages forbid inline
styles, so each mark carries its light colours as presentation attributes and a class; within a page
that has the style sheet the class is enough.  ``CSS`` is the style sheet of pages, served as
a file, and the one within a chart that stands alone.

Colours are distinguishable with any colour vision, on light and dark pages, and readable on
paper.  The six of the series were searched for the greatest least distance under normal vision and
under three simulated deficiencies; a test measures them.  Lightness has one order along a ramp,
turned round on a dark page so that more always stands out more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import starmap
from typing import Final, NamedTuple, TypeAlias
from xml.sax.saxutils import escape

Attribute: TypeAlias = str | float | None
_QUOTES: Final = {'"': "&quot;", "'": "&#39;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}
# What XML 1.0 cannot hold, whether escaped or not.
_UNWRITABLE: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# HTML knows no other tags that close themselves.
_ALONE: Final = {"circle", "g", "line", "path", "rect"}
_PLAIN: Final = re.compile(r"[\w .,:;%#()/·±–-]*")  # most texts: nothing to escape


class Element(NamedTuple):
    """A tag with attributes and children, in order; texts are plain, not markup."""

    tag: str
    attributes: Mapping[str, Attribute]
    children: tuple[Element | Placed | str, ...]


class Placed(NamedTuple):
    """An element at *x* user units, which keeps its size where a page stretches its drawing."""

    x: float
    drawn: Element


Drawn: TypeAlias = Element | Placed


def element(tag: str, *children: Drawn | str | None, **attributes: Attribute) -> Element:
    """Return an element without the children and attributes that are None.

    Names of attributes are written with ``_`` for ``-``, and ``class_`` for ``class``.
    """
    written = {_name(name): value for name, value in attributes.items() if value is not None}
    kept = tuple([child for child in children if child is not None]) if children else ()
    return Element(tag, written, kept)


def group(children: Iterable[Drawn | None], **attributes: Attribute) -> Element:
    """Return a ``g`` of *children*."""
    return element("g", *children, **attributes)


def markup(node: Drawn | str, styled: bool = False) -> str:
    """Return *node* as text: well-formed XML whatever the texts hold.

    Args: styled: the page has the style sheet, so that the attributes that it repeats are left out.
    """
    parts: list[str] = []
    _write(node, styled, parts.append)
    return "".join(parts)


def _write(node: Drawn | str, styled: bool, put: Callable[[str], None]) -> None:
    """Put the parts of *node*, one after another: a page has thousands."""
    if isinstance(node, str):
        put(node if _PLAIN.fullmatch(node) else escape(writable(node), {"\r": "&#13;"}))
        return
    tag, attributes, children = node.drawn if isinstance(node, Placed) else node
    style = _attributes(attributes.get("class", "")) if styled else {}
    put(f"<{tag}")
    for name, value in attributes.items():
        if style.get(name) != value or value is None:
            put(f' {name}="{_value(value)}"')
    if not children and tag in _ALONE:
        put("/>")
        return
    put(">")
    for child in children:
        _write(child, styled, put)
    put(f"</{tag}>")


@cache
def _attributes(style: Attribute) -> Mapping[str, str]:
    """Return the attributes of *style* that its rule in the style sheet has, too."""
    if not isinstance(style, str) or style not in _STYLES:
        return {}
    return {_name(key): value for key, value in paint(style).items() if key != "class_"}


def writable(text: str) -> str:
    """Return *text* with a replacement character for what XML cannot hold."""
    return _UNWRITABLE.sub("\ufffd", text)


def coordinate(value: float) -> str:
    """Return *value* in user units, to a tenth."""
    short = f"{value:.1f}"
    if short.endswith(".0"):
        short = short[:-2]
    return "0" if short == "-0" else short


@cache  # of a few dozen attributes, each written a thousand times
def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _value(value: Attribute) -> str:
    if not isinstance(value, str):
        return coordinate(value or 0.0)
    return value if _PLAIN.fullmatch(value) else escape(writable(value), _QUOTES)


_RAMP: Final = ("#cdeed8", "#90dab2", "#49c1ad", "#3497a9", "#37659e", "#403872", "#251729")
_NIGHT_RAMP: Final = ("#3a2a55", "#454283", "#37659e", "#3497a9", "#49c1ad", "#96ddb5", "#def5e5")
STEPS: Final = len(_RAMP)
SERIES: Final = 6  # more lines in one picture are not distinguishable
_BASE: Final = {"ink": "#1b1f24", "soft": "#57606a", "faint": "#e4e8ec", "line": "#8c959f"}
_NIGHT: Final = {"ink": "#e6edf3", "soft": "#9aa6b2", "faint": "#262c34", "line": "#6e7781"}
_LINES: Final = ("#0b60b0", "#ed6b1e", "#40a489", "#7e0462", "#6e5b33", "#ac76ea")
_NIGHT_LINES: Final = ("#0d7efc", "#d94a09", "#6dfbb3", "#9b678b", "#e7a30e", "#c3b7fe")


def _named(prefix: str, colours: tuple[str, ...]) -> dict[str, str]:
    return {f"{prefix}{number}": colour for number, colour in enumerate(colours, 1)}


LIGHT: Final = {
    **_BASE,
    "paper": "#ffffff",
    **_named("series-", _LINES),
    **_named("step-", _RAMP),
}
DARK: Final = {
    **_NIGHT,
    "paper": "#0d1117",
    **_named("series-", _NIGHT_LINES),
    **_named("step-", _NIGHT_RAMP),
}


def blended(colour: str, paper: str, opacity: float) -> str:
    """Return what *colour* looks like on *paper* at *opacity*."""
    pairs = zip(_channels(colour), _channels(paper), strict=True)
    return "#" + "".join(
        f"{round(opacity * over + (1 - opacity) * under):02x}" for over, under in pairs
    )


def contrast(colour: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21.

    Source: Web Content Accessibility Guidelines 2.2, relative luminance and contrast ratio.
    """
    dark, light = sorted((_luminance(colour), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(channel / 255) for channel in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


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
    "flag": {"fill": "@ink", "font-size": str(SMALL), "font-weight": "600"},
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
    "grid": {"fill": "none", "stroke": "@faint", "stroke-width": "1"},
    "axis": {"fill": "none", "stroke": "@line", "stroke-width": "1"},
    "reference": {"stroke": "@soft", "stroke-width": "1", "stroke-dasharray": "2 3"},
    "past": {"fill": "none", "stroke": "@soft", "stroke-width": "1.5"},
    "ghost": {"fill": "@soft", "fill-opacity": "0.12"},
    "bar": {"fill": "@series-1", "fill-opacity": "0.55"},
    "pale": {"fill": "@series-1", "fill-opacity": "0.22"},
    "outline": {"fill": "none", "stroke": "@series-1", "stroke-width": "1.5"},
    "halo": {"fill": "none", "stroke": "@paper", "stroke-width": "3.5"},
    "end": {"stroke": "@series-1", "stroke-width": "2"},
    "whisker": {"fill": "none", "stroke": "@ink", "stroke-width": "1.5"},
    "noise": {"fill": "@soft", "fill-opacity": "0.16"},
    "void": {"fill": "@soft", "fill-opacity": "0.07"},
    "gap": {"fill": "none", "stroke": "@soft", "stroke-width": "1.25"},
    "stretches": {"fill": "none", "stroke": "none", "pointer-events": "all"},
    "hover": {"fill": "none", "stroke": "none", "pointer-events": "all"},
    "empty": {"fill": "none", "stroke": "@line", "stroke-width": "1", "stroke-dasharray": "2 2"},
    "quiet-reach": {"fill": "none", "stroke": "@soft", "stroke-width": "2"},
    "margin-cell": {"fill": "none", "stroke": "@faint", "stroke-width": "1"},
    "quiet": {"fill": "@paper", "stroke": "@soft", "stroke-width": "1.5"},
}
_OF_SERIES: Final = {
    "band": {"fill": "@", "fill-opacity": "0.16"},
    "line": {"fill": "none", "stroke": "@", "stroke-width": "2", "stroke-linejoin": "round"},
    "past": {"fill": "none", "stroke": "@", "stroke-opacity": "0.5", "stroke-width": "1.25"},
    "ghost": {"fill": "@", "fill-opacity": "0.07"},
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
        for name, style in _OF_SERIES.items():
            looks[f"{name}-{number}"] = {
                key: f"@series-{number}" if value == "@" else value for key, value in style.items()
            }
    for number in range(1, STEPS + 1):
        looks[f"cell-{number}"] = {"fill": f"@step-{number}"}
    return looks


_STYLES: Final = _looks()


@cache
def paint(name: str) -> dict[str, str]:
    """Return the class of *name* and its presentation attributes, in light colours."""
    style = {
        key.replace("-", "_"): LIGHT[value[1:]] if value.startswith("@") else value
        for key, value in _STYLES[name].items()
    }
    return {"class_": name, **style}


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
        f".chart{{display:block;width:100%;font-family:{FONT};"
        f"font-variant-numeric:tabular-nums;"
        f"break-inside:avoid;print-color-adjust:exact;-webkit-print-color-adjust:exact;"
        f"color-scheme:light dark;{_variables()}}}",
        *(
            f":where([data-theme={theme}]) .chart{{color-scheme:{theme}}}"
            for theme in ("light", "dark")
        ),
        ".chart:not(.plot){height:auto}",
        "@media print{.chart{color-scheme:light}}",
    ]
    series = [f"-{number}" for number in range(1, SERIES + 1)]
    rules += [f".chart [class$='{end}']{{--own:var(--chart-series{end})}}" for end in series]
    rules += [_rule(f"[class^='{name}-']", style) for name, style in _OF_SERIES.items()]
    rules += [
        _rule(f".{name}", style)
        for name, style in _STYLES.items()
        if not name.endswith(tuple(series)) or name.startswith("cell")
    ]
    rules.append(".spark{width:7.5rem;max-width:100%}")
    rules += [
        f".chart .on-{light}{dark}{{fill:var(--chart-on-{light}{dark})}}"
        for light in _INKS
        for dark in _INKS
    ]
    return "\n".join(rules) + "\n"


def _rule(selector: str, style: Mapping[str, str]) -> str:
    return f".chart {selector}{{{';'.join(starmap(_property, style.items()))}}}"


def _property(key: str, value: str) -> str:
    if value == "@":
        return f"{key}:var(--own)"
    if value.startswith("@"):
        return f"{key}:var(--chart-{value[1:]})"
    return f"{key}:{value}px" if key == "font-size" else f"{key}:{value}"


def _variables() -> str:
    """Return the colours, each of light and of dark paper."""
    pairs = [(name, colour, DARK[name]) for name, colour in LIGHT.items()]
    inks = [(f"on-{a}{b}", _INKS[a], _INKS[b]) for a in _INKS for b in _INKS]
    return "".join(f"--chart-{name}:light-dark({a},{b});" for name, a, b in (*pairs, *inks))


CSS: Final = _css()
