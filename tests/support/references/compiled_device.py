"""A device of its own: it reads entries of a compiled registry, and nothing of this project.

Integers only, written from docs/design/compiled-registry.md, as a device in another language is.
It has the mechanisms that the device in TypeScript lacks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from math import isqrt
from typing import Any

from tests.support.references.compiled_draws import Draws as Draws
from tests.support.references.compiled_draws import Entry as Entry
from tests.support.references.compiled_draws import ratio_of


def _sign(i: int, j: int) -> bool:
    return (i & j).bit_count() % 2 == 0


def loloha(e: Entry, r: Draws, x: Any) -> bytes:
    prime, g = e.own["prime"], e.own["buckets"]
    seed = r.uniform(prime**2)
    told = (seed // prime * x + seed % prime) % prime % g
    for name in ("first_truth", "second_truth"):
        told = r.respond(told, g, e.ratio(name))
    return e.number(seed * g + told)


def _laplace(r: Draws, t: int, s: int) -> int:
    while True:
        u = r.uniform(t)
        if not r.exp(u, t):
            continue
        v = 0
        while r.exp(1, 1):
            v += 1
        magnitude, negative = (u + t * v) // s, r.uniform(2) == 1
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def discrete_gaussian(e: Entry, r: Draws, x: Any) -> bytes:
    n, steps = e.own["noise"], e.own["steps"]
    step = r.round(x, steps, e.d - 1)
    t = 1 + isqrt(n // 1024)
    while True:
        y = _laplace(r, t, 1)
        off = abs(y) * 1024 * t - n
        whole, rest = divmod(off * off, den := 2 * n * 1024 * t * t)
        if all(r.exp(1, 1) for _ in range(whole)) and r.exp(rest, den):
            return e.number(min(max(step + y, -9 * t), steps + 9 * t) + 9 * t)


def rappor(e: Entry, r: Draws, x: Any) -> bytes:
    m, (p, q) = e.own["bits"], map(ratio_of, e.constants["rates"])
    cohort = r.uniform(e.own["cohorts"])
    place = cohort.to_bytes(4, "big") + x.to_bytes(4, "big")
    digest = hashlib.sha256(b"hearsay rappor" + place).digest()
    numbers = (int.from_bytes(digest[4 * i : 4 * i + 4], "big") for i in range(e.own["hashes"]))
    bloom = sum(1 << m - 1 - bit for bit in {number % m for number in numbers})
    permanent = bloom ^ r.bits(e.ratio("flip"), m)
    zeros = r.bits(p, m)
    one = p[0] * q[1] + q[0] * p[1] == p[1] * q[1]
    ones = zeros ^ ((1 << m) - 1) if one else r.bits(q, m)
    return e.row(permanent & ones | ~permanent & zeros, m, bytes([cohort]))


def _cell(e: Entry, row: int, x: int) -> int:
    prime = (1 << 31) - 1
    digest = hashlib.sha256(b"hearsay sketch" + row.to_bytes(4, "big")).digest()
    a, b, c = (int.from_bytes(digest[i : i + 8], "big") % prime for i in (0, 8, 16))
    return ((a * x + b) * x + c) % prime % e.own["columns"]


def cms(e: Entry, r: Draws, x: Any) -> bytes:
    row, m = r.uniform(e.own["rows"]), e.own["columns"]
    bits = r.bits(e.ratio("flip"), m) ^ 1 << m - 1 - _cell(e, row, x)
    return e.row(bits, m, row.to_bytes(4, "big"))


def hcms(e: Entry, r: Draws, x: Any) -> bytes:
    place = r.uniform(e.own["rows"] * e.own["columns"])
    row, coefficient = divmod(place, e.own["columns"])
    sign = _sign(coefficient, _cell(e, row, x)) == r.true(e.ratio("truth"))
    return e.number(2 * place + sign)


def dbitflip(e: Entry, r: Draws, x: Any) -> bytes:
    count, items = e.own["sampled"], set[int]()
    for last in range(e.d - count, e.d):
        item = r.uniform(last + 1)
        items.add(last if item in items else item)
    flips, width = r.bits(e.ratio("flip"), count), e.size // count
    return b"".join(
        (2 * item + ((item == x) ^ (flips >> i & 1))).to_bytes(width, "big")
        for i, item in enumerate(sorted(items))
    )


MECHANISMS: Mapping[str, Callable[[Entry, Draws, Any], bytes]] = {
    function.__name__: function
    for function in (loloha, discrete_gaussian, rappor, cms, hcms, dbitflip)
}
