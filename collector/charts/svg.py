"""Elements of SVG.  Every text and attribute is escaped when it is written, here and only here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias
from xml.sax.saxutils import escape

Attribute: TypeAlias = str | float | None
_QUOTES: Final = {'"': "&quot;", "'": "&#39;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}
# What XML 1.0 cannot hold, whether escaped or not.
_UNWRITABLE: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ALONE: Final = {"g", "line", "path", "rect"}  # HTML knows no other tags that close themselves
_PLAIN: Final = re.compile(r"[\w .,:;%#()/·±–-]*")  # most texts: nothing to escape


@dataclass(frozen=True)
class Element:
    """A tag with attributes and children, in order; texts are plain, not markup."""

    tag: str
    attributes: Mapping[str, Attribute]
    children: tuple[Element | str, ...]


def element(tag: str, *children: Element | str | None, **attributes: Attribute) -> Element:
    """Return an element without the children and attributes that are None.

    Names of attributes are written with ``_`` for ``-``, and ``class_`` for ``class``.
    """
    kept = {_name(name): value for name, value in attributes.items() if value is not None}
    return Element(tag, kept, tuple(child for child in children if child is not None))


def group(children: Iterable[Element | None], **attributes: Attribute) -> Element:
    """Return a ``g`` of *children*."""
    return element("g", *children, **attributes)


def markup(node: Element | str) -> str:
    """Return *node* as text: well-formed XML whatever the texts hold."""
    if isinstance(node, str):
        return node if _PLAIN.fullmatch(node) else escape(writable(node), {"\r": "&#13;"})
    attributes = "".join(f' {name}="{_value(value)}"' for name, value in node.attributes.items())
    if not node.children and node.tag in _ALONE:
        return f"<{node.tag}{attributes}/>"
    return f"<{node.tag}{attributes}>{''.join(map(markup, node.children))}</{node.tag}>"


def writable(text: str) -> str:
    """Return *text* with a replacement character for what XML cannot hold."""
    return _UNWRITABLE.sub("\ufffd", text)


def coordinate(value: float) -> str:
    """Return *value* in user units, to a tenth."""
    short = f"{value:.1f}".removesuffix(".0")
    return "0" if short == "-0" else short


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _value(value: Attribute) -> str:
    if not isinstance(value, str):
        return coordinate(value or 0.0)
    return value if _PLAIN.fullmatch(value) else escape(writable(value), _QUOTES)
