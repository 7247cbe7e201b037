"""What a typed word has to do with another: endings, slips, short forms, words that mean the same.

The words that people use are data: ``words.toml``.  Pure.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

SAID: Final[Mapping[str, Any]] = tomllib.loads(
    (files(__package__) / "words.toml").read_text("utf-8")
)
# How much a typed word has to do with a word that it is: the same, of the same stem, one that it
# begins, one that is written nearly so, and one that means nearly the same.
SAME, _STEM, _BEGIN, NEAR, _ALIKE = 1.0, 0.9, 0.75, 0.7, 0.6
_SHORTEST, _LONG = 5, 9  # letters of words that may have one wrong letter, and two
_WORD: Final = re.compile(r"[^\W_]+(?:\.\d+)*|%")
_ENDINGS: Final = "ations ation ings ing ers ies ied ed er es s e".split()  # noqa: SIM905
_FILLERS: Final = frozenset(SAID["fillers"].split())
_SHORT: Final[Mapping[str, str]] = SAID["short"]


def raw_words(text: str) -> list[str]:
    """Return the words of *text* as they stand there, in small letters."""
    return _WORD.findall(text.casefold())


def words_in(text: str) -> tuple[str, ...]:
    """Return the words of *text* that say something, in small letters; 1.3 is one word."""
    return tuple(word for word in plain(text).split() if word not in _FILLERS)


def words_of_value(text: str) -> tuple[str, ...]:
    """Return the words of a value: all of it where none says anything, as of the country "IN"."""
    return words_in(text) or tuple(plain(text).split())


def plain(text: str) -> str:
    """Return *text* in words without capitals and accents, and what is short for others in full."""
    letters = unicodedata.normalize("NFKD", text.replace("_", " ").casefold())
    words = " ".join(_WORD.findall("".join(c for c in letters if not unicodedata.combining(c))))
    for short, full in _SHORT.items():
        words = re.sub(rf"\b{short}\b", full, words)
    return words


@lru_cache(maxsize=16_384)
def stem_of(word: str) -> str:
    """Return *word* without its ending."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            bare = word.removesuffix(ending)
            return bare[:-1] if len(bare) > 3 and bare[-1] == bare[-2] else bare
    return word


@cache
def _groups() -> Mapping[str, frozenset[int]]:
    """Return by stem in which lines of the list of words alike a word stands."""
    groups: dict[str, set[int]] = {}
    for number, line in enumerate(SAID["alike"]):
        for word in line.split():
            groups.setdefault(stem_of(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in groups.items()}


@lru_cache(maxsize=16_384)
def _groups_of(stem: str) -> frozenset[int]:
    """Return the lines of words alike that hold *stem*, or one that is misspelt so."""
    near = [] if stem in _groups() else [word for word in _groups() if _is_near(stem, word)]
    return frozenset().union(*(_groups()[word] for word in (near or [stem]) if word in _groups()))


@lru_cache(maxsize=32_768)
def likeness(typed: str, word: str) -> float:
    """Return how much a *typed* word has to do with another *word*, from 0 to 1."""
    if typed == word:
        return SAME
    if not typed[0].isalpha() or not word[0].isalpha():  # versions and numbers are no near misses
        return 0.0
    stem, other = stem_of(typed), stem_of(word)
    if stem == other:
        return _STEM
    if len(stem) >= 3 and other.startswith(stem):
        return _BEGIN
    if len(other) >= 4 and stem.startswith(other):
        return _BEGIN
    if _is_near(typed, word) or _is_near(stem, other):
        return NEAR
    # of words that are not typed only the list itself: a registry has more of them than are kept
    return _ALIKE if _groups_of(stem) & _groups().get(other, frozenset()) else 0.0


def _is_near(typed: str, word: str) -> bool:
    """Return whether one letter, or two of long words, are missing, added, wrong or swapped.

    The distance is that of optimal string alignment.
    """
    most = (min(len(typed), len(word)) >= _SHORTEST) + (min(len(typed), len(word)) >= _LONG)
    if not most or abs(len(typed) - len(word)) > most:
        return False
    if len({*typed} ^ {*word}) > 2 * most:  # each change is of two letters at most
        return False
    before: list[int] = []
    row: list[int] = [*range(len(word) + 1)]
    for i, letter in enumerate(typed, 1):
        earlier, before, row = before, row, [i]
        for j, other in enumerate(word, 1):
            cost = min(row[-1] + 1, before[j] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and typed[i - 2 : i] == word[j - 2 : j][::-1]:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > most and min(before) >= most:
            return False
    return bool(row[-1] <= most)
