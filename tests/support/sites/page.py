"""A page as a browser would read it: what could act, what it loads, what it says."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

# All that pages are made of; anything else came out of a label.
TAGS: Final = {
    *("html", "head", "meta", "title", "link", "body", "main", "header", "footer", "section"),
    *("article", "figure", "figcaption", "h1", "h2", "h3", "p", "a", "dl", "dt", "dd", "ul", "li"),
    "ol",
    *("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "details", "summary"),
    *("code", "pre", "div", "span", "strong", "em", "small", "b", "i", "svg", "g", "rect", "line"),
    *("text", "path", "circle", "desc", "nav", "form", "label", "select", "option", "input"),
    *("optgroup", "textarea"),
    *("button", "fieldset", "legend", "output", "meter", "time", "script"),
}
_LOADING: Final = ("href", "src", "xlink:href", "action", "data-copy")


class Page(HTMLParser):
    """Reads a page, and keeps what could act that is not a file of ours."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []  # tag, name, value
        self.acting: list[str] = []
        self.scripts = ""  # inline
        self.text = ""
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in TAGS:
            self.acting.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "srcdoc", "formaction"):
                self.acting.append(name)
            if name in _LOADING and not (value or "").startswith(("/", "#")):
                self.acting.append(f"{name}={value}")
            if name in _LOADING and (value or "").startswith("//"):
                self.acting.append(f"{name}={value}")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_comment(self, data: str) -> None:
        self.acting.append(f"<!--{data}")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._inside == "script":
            self.scripts += data

    def values(self, name: str, tag: str = "") -> list[str]:
        """Return the values of the attribute *name*, of *tag* only if it is given."""
        return [v for of, n, v in self.attributes if n == name and tag in ("", of)]
