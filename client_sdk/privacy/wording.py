"""Words that several texts for people share."""

from __future__ import annotations

from typing import Final

ASCII: Final = {
    "ε": "epsilon",
    "δ": "delta",
    "±": "+-",
    "–": "-",
    "−": "-",
    "…": "...",
    "∞": "infinite",
}


def counted(count: int, noun: str) -> str:
    """Return *count* things: "1 report", "2,000 reports"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def in_ascii(text: str) -> str:
    """Return *text* in letters that every terminal and file can hold."""
    for letter, words in ASCII.items():
        text = text.replace(letter, words)
    return text.encode("ascii", "replace").decode("ascii")


def printable(text: str, encoding: str | None) -> str:
    """Return *text*, or where *encoding* cannot hold it the same in ASCII."""
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return in_ascii(text)
    return text
