"""A device of its own: it reads entries of a compiled registry, and nothing of this project.

Integers only, written from docs/design/compiled-registry.md, as a device in another language would
be.  Of the mechanisms' files it needs how a report is numbered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from itertools import accumulate
from math import gcd, isqrt, perm
from typing import Any

from tests.support.references.compiled_draws import Draws as Draws
from tests.support.references.compiled_draws import Entry as Entry
from tests.support.references.compiled_draws import Ratio, ratio_of


def grr(e: Entry, r: Draws, x: Any) -> bytes:
    return e.number(r.respond(x, e.d, e.ratio("truth")))


def _sign(i: int, j: int) -> bool:
    return (i & j).bit_count() % 2 == 0


def hadamard(e: Entry, r: Draws, x: Any) -> bytes:
    row = r.uniform(1 << (e.d - 1).bit_length())
    return e.number(2 * row + (_sign(row, x) == r.true(e.ratio("truth"))))


def hierarchy(e: Entry, r: Draws, x: Any) -> bytes:
    b, levels = e.own["fanout"], 1
    while b**levels < e.d:
        levels += 1
    level = 1 + r.uniform(levels)
    row = r.uniform(b**level)
    sign = _sign(row, x // b ** (levels - level)) == r.true(e.ratio("truth"))
    return e.number(sum(2 * b**above for above in range(1, level)) + 2 * row + sign)


def oue(e: Entry, r: Draws, x: Any) -> bytes:
    own = 1 << e.d - 1 - x
    others = r.bits(e.ratio("flip"), e.d) & ~own
    return e.row(others | own if r.uniform(2) < 1 else others, e.d)


def sue(e: Entry, r: Draws, x: Any) -> bytes:
    return e.row(r.bits(e.ratio("flip"), e.d) ^ 1 << e.d - 1 - x, e.d)


def _bucket(e: Entry, r: Draws, x: int, *truths: str) -> bytes:
    prime, g = e.own["prime"], e.own["buckets"]
    seed = r.uniform(prime**2)
    told = (seed // prime * x + seed % prime) % prime % g
    for name in truths:
        told = r.respond(told, g, e.ratio(name))
    return e.number(seed * g + told)


def olh(e: Entry, r: Draws, x: Any) -> bytes:
    return _bucket(e, r, x, "truth")


def loloha(e: Entry, r: Draws, x: Any) -> bytes:
    return _bucket(e, r, x, "first_truth", "second_truth")


def block_design(e: Entry, r: Draws, x: Any) -> bytes:
    omega, prime = e.own["block_size"], e.own["prime"]
    holds = r.true(e.ratio("truth"))
    a = 1 + r.uniform(prime - 1)
    i = r.uniform(omega) if holds else omega + r.uniform(prime - omega)
    return e.number((a - 1) * prime + (x - a * (pow(i, prime - 2, prime) if i else 0)) % prime)


def _points(order: int, t: int) -> int:
    return int((order**t - 1) // (order - 1))


def _point(r: Draws, order: int, d: int, item: int, truth: Ratio) -> int:
    """Return a point by projective geometry response."""
    t = 2
    while _points(order, t) < d:
        t += 1
    leading = 0
    while item >= order**leading:
        item -= order**leading
        leading += 1
    if r.true(truth):
        free, product = 1 + r.uniform(order ** (t - 1) - 1), 0
    else:
        free, product = r.uniform(order ** (t - 1)), 0
        product = 1 + r.uniform(order - 1)
    high, low = divmod(free, order**leading)
    inner = sum(low // order**i * (item // order**i % order) for i in range(leading))
    vector = (high * order + (product - inner) % order) * order**leading + low
    digits = []
    while vector:
        vector, digit = divmod(vector, order)
        digits.append(digit)
    scale = pow(digits.pop(), -1, order)
    tail = sum(digit * scale % order * order**i for i, digit in enumerate(digits))
    return int(_points(order, len(digits)) + tail)


def pgr(e: Entry, r: Draws, x: Any) -> bytes:
    return e.number(_point(r, e.own["order"], e.d, x, e.ratio("truth")))


def exponential(e: Entry, r: Draws, x: Any) -> bytes:
    num, den = e.ratio("decay")
    weights = [1 << 128]
    for _ in range(e.d - 1):
        weights.append(-(-weights[-1] * num // den))
    seen = [0, *accumulate(weights[abs(item - x)] for item in range(e.d))]
    low, high = 0, e.d
    while high - low > 1:
        middle = (low + high) // 2
        lower = r.uniform(seen[high] - seen[low]) < seen[middle] - seen[low]
        low, high = (low, middle) if lower else (middle, high)
    return e.number(low)


def duchi(e: Entry, r: Draws, x: Any) -> bytes:
    return e.number(r.window(r.round(x, 1, e.d - 1), 1, 1, e.ratio("inside")))


def one_bit_mean(e: Entry, r: Draws, x: Any) -> bytes:
    points = e.own["points"]
    step = r.round(x, points, e.d - 1)
    return e.number(r.window(int(r.uniform(points) < step), 1, 1, e.ratio("inside")))


def piecewise(e: Entry, r: Draws, x: Any) -> bytes:
    steps = e.own["steps"]
    step = r.round(x, steps, e.d - 1)
    return e.number(r.window(step, steps, e.own["width"], e.ratio("inside")))


def hybrid(e: Entry, r: Draws, x: Any) -> bytes:
    steps, width = e.own["steps"], e.own["width"]
    if steps > 1 and r.true(e.ratio("coin")):
        return piecewise(e, r, x)
    bit = r.window(r.round(x, 1, e.d - 1), 1, 1, e.ratio("truth"))
    return e.number((steps + width if steps > 1 else 0) + bit)


def minimax(e: Entry, r: Draws, x: Any) -> bytes:
    upper, width = bytes.fromhex(f"{e.own['distances']:x}"), e.own["width"]
    places = [-byte for byte in upper] + [*reversed(upper)]
    steps = len(places) - width
    sums = [sum(places[i : i + width]) for i in range(steps + 1)]
    num, den = x
    w = den * (e.d - 1)
    a = sums[-1] * (2 * num - w)
    step = max(i for i in range(steps + 1) if sums[i] * w <= a)
    if (rest := a - sums[step] * w) and r.uniform((sums[step + 1] - sums[step]) * w) < rest:
        step += 1
    return e.number(r.window(step, steps, width, e.ratio("inside")))


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


def _clamped(e: Entry, noisy: int, last: int, margin: int) -> bytes:
    return e.number(min(max(noisy, -margin), last + margin) + margin)


def discrete_laplace(e: Entry, r: Draws, x: Any) -> bytes:
    top, (t, s) = e.d - 1, e.ratio("scale")
    step = r.round(x, top, top)
    return _clamped(e, step + _laplace(r, t, s), top, -(-40 * t // s))


def discrete_gaussian(e: Entry, r: Draws, x: Any) -> bytes:
    n, steps = e.own["noise"], e.own["steps"]
    step = r.round(x, steps, e.d - 1)
    t = 1 + isqrt(n // 1024)
    while True:
        y = _laplace(r, t, 1)
        off = abs(y) * 1024 * t - n
        whole, rest = divmod(off * off, den := 2 * n * 1024 * t * t)
        if all(r.exp(1, 1) for _ in range(whole)) and r.exp(rest, den):
            return _clamped(e, step + y, steps, 9 * t)


def square_wave(e: Entry, r: Draws, x: Any) -> bytes:
    bins, width = e.own["bins"], 2 * e.own["reach"] + 1
    num, den = x[0] * (bins - 1), x[1] * (e.d - 1)
    den //= (shared := gcd(num, den))
    below, rest = divmod(num // shared, den)
    place = below + (1 if rest and r.uniform(den) < rest else 0)
    return e.number(r.window(place, bins - 1, width, e.ratio("inside")))


def subset_selection(e: Entry, r: Draws, x: Any) -> bytes:
    """Only of subsets that are drawn one item at a time."""
    omega, others = e.own["subset_size"], e.d - 1
    holds = r.true(e.ratio("truth"))
    count = omega - holds
    digits, places = r.uniform(perm(others, count)), set[int]()
    for last in range(others - count, others):
        digits, place = divmod(digits, last + 1)
        places.add(last if place in places else place)
    subset = sorted([place + (place >= x) for place in places] + [x] * holds)
    if e.size > 8:
        return e.row(sum(1 << e.d - 1 - item for item in subset), e.d)
    return e.number(sum(_choose(item, i) for i, item in enumerate(subset, 1)))


def _choose(n: int, k: int) -> int:
    return perm(n, k) // perm(k, k)


def padding_sampling(e: Entry, r: Draws, x: Any) -> bytes:
    slot, unary = r.uniform(max(e.own["pad"], len(x))), e.own["unary"]
    held = slot < len(x)
    symbol = sorted(x)[slot] if held else e.d + (0 if unary else slot)
    if unary:
        return oue(e._replace(d=e.d + 1), r, symbol)
    return e.number(r.respond(symbol, e.d + e.own["pad"], e.ratio("truth")))


def privset(e: Entry, r: Draws, x: Any) -> bytes:
    """By Lagrange's formula, where the device takes Newton's."""
    pad, prime, width = e.own["pad"], e.own["prime"], e.own["width"]
    items, held = sorted(x), len(x)
    if held > pad:
        rest = r.uniform(perm(held, pad))
        for i in range(pad):
            rest, ahead = divmod(rest, held - i)
            items[i], items[i + ahead] = items[i + ahead], items[i]
        items = sorted(items[:pad])
    items += range(e.d, e.d + pad - len(items))
    missing = (prime - width) ** pad
    if r.true(e.ratio("truth")):
        values = _meeting(r.uniform(prime**pad - missing), pad, prime, width)
    else:
        rank = r.uniform(missing)
        values = [width + rank // (prime - width) ** i % (prime - width) for i in range(pad)][::-1]
    basis = [_product(items[:i] + items[i + 1 :], prime) for i in range(pad)]
    whole, leading = _product(items, prime), r.uniform(prime)
    found = [leading * c for c in whole]
    for point, y, part in zip(items, values, basis, strict=True):
        scale = y * pow(sum(c * point**i for i, c in enumerate(part)), prime - 2, prime)
        found = [a + scale * b for a, b in zip(found, [*part, 0], strict=True)]
    bits = prime.bit_length()
    return sum(c % prime << bits * i for i, c in enumerate(found)).to_bytes(e.size, "big")


def _product(roots: list[int], prime: int) -> list[int]:
    """Return the coefficients, lowest first, of the product of x less each root."""
    found = [1]
    for root in roots:
        found = [(a - root * b) % prime for a, b in zip([0, *found], [*found, 0], strict=True)]
    return found


def _meeting(rank: int, pad: int, prime: int, width: int) -> list[int]:
    """Return the values of *rank*, counted by the place of the first below *width*."""
    if pad == 0:
        return []
    below = width * prime ** (pad - 1)
    if rank < below:
        return [rank // prime**i % prime for i in range(pad)][::-1]
    met = prime ** (pad - 1) - (prime - width) ** (pad - 1)
    first, rest = divmod(rank - below, met)
    return [width + first, *_meeting(rest, pad - 1, prime, width)]


def sampled_item(e: Entry, r: Draws, x: Any) -> bytes:
    item = r.uniform(e.d)
    return e.number(2 * item + ((item in x) != r.true(e.ratio("flip"))))


def _pair(e: Entry, r: Draws, x: Mapping[int, Ratio]) -> tuple[int, bool]:
    slot = r.uniform(max(e.own["pad"], len(x)))
    if slot >= len(x):
        return e.d + slot - len(x), True
    key = sorted(x)[slot]
    num, den = x[key]
    return key, r.uniform(den * e.own["top"]) < num


def pckv_grr(e: Entry, r: Draws, x: Any) -> bytes:
    key, plus = _pair(e, r, x)
    symbol = key if plus and key < e.d else e.d + key
    return e.number(r.respond(symbol, 2 * e.d + e.own["pad"], e.ratio("truth")))


def pckv_ue(e: Entry, r: Draws, x: Any) -> bytes:
    key, plus = _pair(e, r, x)
    shown, signs = r.bits(e.ratio("shown"), e.d), r.bits((1, 2), e.d)
    is_shown, is_plus = r.uniform(2) < 1, r.true(e.ratio("kept")) == plus
    if key < e.d:
        own = 1 << e.d - 1 - key
        shown = shown | own if is_shown else shown & ~own
        signs = signs | own if is_plus else signs & ~own
    return e.row((shown & signs) << e.d | shown & ~signs, 2 * e.d)


def pem(e: Entry, r: Draws, x: Any) -> bytes:
    prime, rows, step = (1 << 31) - 1, e.own["rows"], e.own["step"]
    lengths = [*range(step + 1, e.d + 1, step), e.d + 1]
    group = r.uniform(len(lengths) * rows)
    level, row = divmod(group, rows)
    length = lengths[level]
    symbols = [*(byte + 1 for byte in x[:length]), *([257] if len(x) < length else [])]
    public = b"hearsay prefix" + row.to_bytes(4, "big")
    factor = int.from_bytes(hashlib.sha256(public).digest()[:8], "big") % prime
    mixed = hashlib.sha256(public + (level + 1).to_bytes(4, "big")).digest()
    b, c = (int.from_bytes(mixed[i : i + 8], "big") % prime for i in (8, 16))
    h = 0
    for symbol in symbols:
        h = (h * factor + symbol) % prime
    column = ((h + b) * h + c) % prime * e.own["columns"] >> 31
    order, t = e.own["order"], 2
    while _points(order, t) < e.own["columns"]:
        t += 1
    point = _point(r, order, e.own["columns"], column, e.ratio("truth"))
    return e.number(group * _points(order, t) + point)


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
    for function in (
        block_design,
        *(grr, hadamard, hierarchy, oue, sue, olh, loloha, pgr, exponential, duchi, one_bit_mean),
        *(piecewise, hybrid, minimax, discrete_laplace, discrete_gaussian, square_wave),
        *(subset_selection, padding_sampling, sampled_item, pckv_grr, pckv_ue, pem, rappor),
        *(block_design, privset, cms, hcms, dbitflip),
    )
}
