"""Charts of a page: one drawing for every width where there is an axis along it.

Between the ends of its plot a drawing is stretched to the width that the page has; letters, markers
and lines keep their size, and a style leaves every other label out on a phone.  What stands in
columns, or is drawn for one width, has another drawing for a phone, and a style shows one of them.
The words around a drawing are the page's: a paragraph, the names of its lines, and a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ..letters import one_line
from .frame import SAMPLE_HEIGHT, SAMPLE_WIDTH, ChartOptions, Note, Picture, titled
from .marks import dot
from .svg import Drawn, Element, Placed, element, markup

WIDTH: Final = 540  # user units: about the pixels of a panel, so that its letters are of its size
_NARROW_WIDTH: Final = 320  # user units: the pixels of a panel on a phone of 360
_NARROW: Final = "-n"  # after the prefix of ids
_SAMPLE: Final = 5  # user units, half the sample of a line
_OWN_PLACE: Final = {"circle": "cx", "text": "x"}
Draw: TypeAlias = Callable[[ChartOptions], Sequence[Picture]]


def page_chart(draw: Draw, prefix: str, **fields: Any) -> str:
    """Return what *draw* draws as the HTML of a page that has the style sheets.

    Args: prefix: of ids.  fields: further options.
    """
    options = ChartOptions(prefix, heading=False, width=WIDTH, styled=True, **fields)
    pictures = draw(options)
    small = replace(options, prefix=prefix + _NARROW, width=_NARROW_WIDTH, interactive=False)
    is_one = all(picture.plot and not picture.has_columns for picture in pictures)
    others = pictures if is_one else draw(small)
    nodes: list[Element] = []
    for i, (picture, other) in enumerate(zip(pictures, others, strict=True)):
        suffix = f"-{i}" if i else ""
        if picture.subtitle:
            nodes.append(element("p", one_line(picture.subtitle), class_="said"))
        own = replace(options, prefix=options.prefix + suffix)
        if picture.plot:
            nodes.append(_fluid(picture, *picture.plot, own))
        else:
            nodes.append(_fixed(picture, replace(own, css_class="broad")))
        if picture.has_columns or not picture.plot:
            narrow = replace(small, prefix=small.prefix + suffix, css_class="narrow")
            nodes.append(_fixed(other, narrow))
        nodes += _words(picture)
    return "".join(markup(node, styled=True) for node in nodes)


def _fixed(picture: Picture, options: ChartOptions) -> Element:
    """Return *picture* at the width that it is drawn for, which a page scales."""
    view = f"0 0 {options.width} {picture.height:.0f}"
    return titled(picture.title, picture.description, picture.body, options, viewBox=view)


def _fluid(picture: Picture, left: float, right: float, options: ChartOptions) -> Element:
    """Return *picture*, its plot stretched between margins of the widths that they are drawn with.

    Args: left, right: the ends of the plot, user units.
    """
    content = _stretched(picture.body, left, right, picture.height)
    plain = replace(options, css_class="plot")
    plot = titled(picture.title, picture.description, content, plain, height=picture.height)
    margins = (
        element("svg", width=width, height=1.0, class_=style, aria_hidden="true")
        for width, style in ((left, None), (options.width - right, "names"))
    )
    first, last = margins
    styles = {"fluid": True, "named": picture.series, "broad": picture.has_columns}
    return element("div", first, plot, last, class_=" ".join(filter(styles.get, styles)))


def _stretched(
    nodes: Iterable[Drawn | str], left: float, right: float, height: float
) -> Iterator[Element]:
    """Yield *nodes* in order: what is placed at its part of the width, all else stretched."""
    run: list[Drawn | str] = []

    def shapes() -> Iterator[Element]:
        if run:
            view = f"{left:.1f} 0 {right - left:.1f} {height:.0f}"
            fit = {"viewBox": view, "preserveAspectRatio": "none", "width": "100%"}
            yield Element("svg", {**fit, "height": f"{height:.0f}"}, tuple(run))
            run.clear()

    for node in nodes:
        if isinstance(node, Placed):
            yield from shapes()
            yield _at_part(node, left, right)
        elif isinstance(node, Element) and _holds_placed(node):
            yield from shapes()
            inner = _stretched(node.children, left, right, height)
            yield Element(node.tag, node.attributes, tuple(inner))
        else:
            run.append(node)
    yield from shapes()


def _holds_placed(node: Element) -> bool:
    return any(
        isinstance(child, Placed) or (isinstance(child, Element) and _holds_placed(child))
        for child in node.children
    )


def _at_part(node: Placed, left: float, right: float) -> Element:
    """Return what is placed, at its part of the way from *left* to *right*."""
    part = f"{100 * (node.x - left) / (right - left):.2f}%"
    tag, attributes, children = node.drawn
    own = _OWN_PLACE.get(tag)
    if own and attributes.get(own) == node.x:
        return Element(tag, {**attributes, own: part}, children)
    return element("svg", element("g", node.drawn, transform=f"translate({-node.x:.1f})"), x=part)


def _words(picture: Picture) -> Iterator[Element]:
    """Yield the names of the lines, for a phone, and what stands below a picture."""
    if picture.series:
        names = (_name(label, number) for label, number in picture.series)
        yield element("ul", *names, class_="legend")
    if picture.notes:
        yield element("ul", *map(_note, picture.notes), class_="notes")


def _name(label: str, number: int) -> Element:
    sample = dot(_SAMPLE, _SAMPLE, number, size=3.5)
    drawn = _sample([sample], 2 * _SAMPLE, 2 * _SAMPLE)
    return element("li", drawn, one_line(label), data_series=str(number))


def _note(note: Note) -> Element:
    sample = list(note.sample())
    drawn = _sample(sample, SAMPLE_WIDTH, SAMPLE_HEIGHT) if sample else None
    return element("li", drawn, one_line(note.text))


def _sample(drawn: Sequence[Element], width: int, height: int) -> Element:
    view = f"0 0 {width} {height}"
    size = {"width": float(width), "height": float(height)}
    return element("svg", *drawn, class_="chart sample", viewBox=view, aria_hidden="true", **size)
