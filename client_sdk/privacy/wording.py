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
PERIODS: Final = {"1h": "hour", "1d": "day", "7d": "week", "once": "lifetime"}  # by ``every``


def a_period(every: str) -> str:
    """Return an epoch of length *every* with its article: "a week"."""
    article = "an" if every == "1h" else "a"
    return f"{article} {PERIODS[every]}"


def how_often(every: str) -> str:
    """Return how often a metric is sent that is asked *every* so long: "at most once a week"."""
    return every if every == "once" else f"at most once {a_period(every)}"


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
