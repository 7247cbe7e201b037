"""What the benchmark of rounds learns: registries of public data, rows, and a fast device.

The features of people's incomes are picked by hand from what the census asks; their bounds are
round numbers that anybody would have written.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.lib.public_data import opened
from client_sdk.mechanisms.numbers.codebook import TABLE, Codebook, codeword

_COLUMNS: Final = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation"),
    *("relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week"),
    *("native_country", "income"),
)
_NUMBERS: Final = """
age = { min = 20, max = 60, zero = 40 }
education_num = { min = 4, max = 16, zero = 10 }
hours_per_week = { min = 20, max = 60, zero = 40 }
capital_gain = { min = 0, max = 5000, zero = 0 }
capital_loss = { min = 0, max = 2000, zero = 0 }
"""
_COMMON: Final = ("male", "white")  # flags that most people have: what is rare counts
_FLAGS: Final = {  # what a hand-picked truth of a person is: a column and one of its values
    "male": ("sex", "Male"),
    "married": ("marital_status", "Married-civ-spouse"),
    "never_married": ("marital_status", "Never-married"),
    "manager": ("occupation", "Exec-managerial"),
    "specialist": ("occupation", "Prof-specialty"),
    "service": ("occupation", "Other-service"),
    "own_business": ("workclass", "Self-emp-inc"),
    "child": ("relationship", "Own-child"),
    "white": ("race", "White"),
}
_VALUES: Final = {  # of the census's questions, as its description lists them
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay"
    " Never-worked ?",
    "marital_status": "Married-civ-spouse Divorced Never-married Separated Widowed"
    " Married-spouse-absent Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty"
    " Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving"
    " Priv-house-serv Protective-serv Armed-Forces ?",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native_country": "United-States Cambodia England Puerto-Rico Canada Germany"
    " Outlying-US(Guam-USVI-etc) India Japan Greece South China Cuba Iran Honduras Philippines"
    " Italy Poland Jamaica Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador"
    " Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador"
    " Trinadad&Tobago Peru Hong Holand-Netherlands ?",
}
MSNBC_TEST: Final = 100_000  # visitors
_PAGES: Final = tuple(map(str, range(1, 18)))


class Data(NamedTuple):
    """The table of features of a registry, and rows of it with their labels."""

    features: str
    train: list[tuple[Mapping[str, object], bool]]
    test: list[tuple[Mapping[str, object], bool]]


def few() -> Data:
    """Return Adult with 14 hand-picked features: 15 coefficients with the intercept."""
    flags = "".join(
        f"{name} = {{ min = 0, max = 1, zero = {int(name in _COMMON)} }}\n" for name in _FLAGS
    )

    def row(person: Mapping[str, str]) -> dict[str, object]:
        truths = {name: float(person[column] == v) for name, (column, v) in _FLAGS.items()}
        return {**_numbers(person), **truths}

    return Data(_NUMBERS + flags, *(_adult(name, row) for name in ("train", "test")))


def many() -> Data:
    """Return Adult with all its questions but the weight and education's names: 92."""
    listed = {name: values.split() for name, values in _VALUES.items()}
    values = "".join(f"{name} = {{ values = {_toml(v)} }}\n" for name, v in listed.items())

    def row(person: Mapping[str, str]) -> dict[str, object]:
        return {**_numbers(person), **{name: person[name] for name in listed}}

    return Data(_NUMBERS + values, *(_adult(name, row) for name in ("train", "test")))


def pages() -> Data:
    """Return MSNBC: is the third page of another category than the second; 36 coefficients.

    Of the visitors who saw three pages, 100,000 drawn by a fixed seed are the test set.
    """
    features = "".join(f"{name} = {{ values = {_toml(_PAGES)} }}\n" for name in ("first", "second"))
    features += "same = { min = 0, max = 1, zero = 0 }\n"
    rows: list[tuple[Mapping[str, object], bool]] = []
    for line in opened("msnbc_sessions.seq"):
        visit = line.split()
        if len(visit) > 2 and visit[0].isdigit():
            first, second, third = visit[:3]
            same = float(first == second)
            rows.append(({"first": first, "second": second, "same": same}, third != second))
    order = np.random.default_rng(99).permutation(len(rows))
    test, train = order[:MSNBC_TEST], order[MSNBC_TEST:]
    return Data(features, [rows[at] for at in train], [rows[at] for at in test])


def _toml(values: Any) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"


def _numbers(person: Mapping[str, str]) -> dict[str, object]:
    names = ("age", "education_num", "hours_per_week", "capital_gain", "capital_loss")
    return {name: float(person[name]) for name in names}


def _adult(name: str, row: Any) -> list[tuple[Mapping[str, object], bool]]:
    return [(row(person), person["income"].startswith(">")) for person in _people(name)]


def _people(name: str) -> Iterator[dict[str, str]]:
    with opened(f"adult_{name}.csv") as file:
        for fields in csv.reader(file, skipinitialspace=True):
            if len(fields) == len(_COLUMNS):
                yield dict(zip(_COLUMNS, fields, strict=True))


class FastCodebook(Codebook):
    """The device's own mechanism with the products of its words by numpy, and words kept.

    Whatever is drawn, and in which order, is the shipped code's; a test holds the payloads of both
    against each other for the same draws.
    """

    def ranked(self, first: int, value: tuple[int, ...]) -> list[int]:
        """Return the words from *first* on by falling product, equal ones in order."""
        words = _words(first, self.words, 2 * self.domain_size)
        products = words.astype(np.int64) @ np.array(value, dtype=np.int64)
        order: list[int] = np.argsort(-products, kind="stable").tolist()
        return order


_PAIRS: Final = np.add.outer(np.array(TABLE), np.array(TABLE)).ravel().astype(np.int16)
_kept: Final[dict[tuple[int, int], Any]] = {}


def _words(first: int, count: int, width: int) -> Any:
    """Return the words from *first* on, one a row; they are public, and the same for everybody."""
    key = first, width
    if key not in _kept:
        stream = b"".join([codeword(first + word, width) for word in range(count)])
        _kept[key] = _PAIRS[np.frombuffer(stream, dtype=">u2").reshape(count, -1)]
    return _kept[key]
