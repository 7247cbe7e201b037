"""The peers' mechanisms and ours, each as one call that makes a report and one that answers.

``report`` is one call on a device.  ``answer`` is all that a server does: take the reports in, add
them up and estimate every item.  The peers are imported when asked for: they live in an environment
of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, NamedTuple

from client_sdk.core.randomness import system_randomness
from client_sdk.mechanisms import Mechanism, load

EPSILON: Final = 1.0  # nats per report
OURS: Final = "hearsay"


class Contestant(NamedTuple):
    """A mechanism of a library.  ``answer`` is None where the library leaves that to its user."""

    library: str
    mechanism: str
    report: Callable[[int], Any]
    answer: Callable[[list[Any]], Any] | None


def hearsay(name: str, items: int, np: Any) -> Contestant:
    """Return our mechanism *name*, drawing from the operating system."""
    mechanism, randomness = load(name)(str(EPSILON), items), system_randomness()

    def answer(reports: list[bytes]) -> Any:
        return _estimates(mechanism, reports, np)

    return Contestant(OURS, name, lambda item: mechanism.randomize(item, randomness), answer)


def pure_ldp(items: int) -> Iterator[Contestant]:
    """Yield the oracles of pure-ldp; its items begin at 1."""
    package = "pure_ldp.frequency_oracles"
    direct, unary, hashing, hadamard = (
        import_module(f"{package}.{name}")
        for name in ("direct_encoding", "unary_encoding", "local_hashing", "hadamard_response")
    )
    shape = (EPSILON, items)
    response = hadamard.HadamardResponseServer(*shape)
    client = hadamard.HadamardResponseClient(*shape, response.get_hash_funcs())
    pairs = {
        "grr": (direct.DEClient(*shape), direct.DEServer(*shape)),
        "hadamard": (client, response),
    }
    for name, best in (("sue", False), ("oue", True)):
        pairs[name] = unary.UEClient(*shape, use_oue=best), unary.UEServer(*shape, use_oue=best)
    pairs["olh"] = hashing.LHClient(*shape, use_olh=True), hashing.LHServer(*shape, use_olh=True)
    for name, (device, server) in pairs.items():

        def report(item: int, device: Any = device) -> Any:
            return device.privatise(item + 1)

        def answer(reports: list[Any], server: Any = server) -> Any:
            server.reset()
            server.aggregate_all(reports)
            return server.estimate_all(range(1, items + 1), suppress_warnings=True)

        yield Contestant("pure-ldp", name, report, answer)


def multi_freq_ldpy(items: int) -> Iterator[Contestant]:
    """Yield the oracles of multi-freq-ldpy; its answers are shares, cut off at 0 and rescaled."""
    package = "multi_freq_ldpy.pure_frequency_oracles"
    grr, hashing, subset, unary = (
        import_module(f"{package}.{name}") for name in ("GRR", "LH", "SS", "UE")
    )
    calls: dict[str, tuple[Callable[[int], Any], Callable[[list[Any]], Any]]] = {
        "grr": (
            lambda item: grr.GRR_Client(item, items, EPSILON),
            lambda reports: grr.GRR_Aggregator_MI(reports, items, EPSILON),
        ),
        "olh": (
            lambda item: hashing.LH_Client(item, items, EPSILON, True),
            lambda reports: hashing.LH_Aggregator_MI(reports, items, EPSILON, True),
        ),
        "oue": (
            lambda item: unary.UE_Client(item, items, EPSILON, True),
            lambda reports: unary.UE_Aggregator_MI(reports, EPSILON, True),
        ),
        "subset_selection": (
            lambda item: subset.SS_Client(item, items, EPSILON),
            lambda reports: subset.SS_Aggregator_MI(reports, items, EPSILON),
        ),
        "sue": (
            lambda item: unary.UE_Client(item, items, EPSILON, False),
            lambda reports: unary.UE_Aggregator_MI(reports, EPSILON, False),
        ),
    }
    for name, (report, answer) in calls.items():
        yield Contestant("multi-freq-ldpy", name, report, answer)


def opendp(items: int) -> Iterator[Contestant]:
    """Yield randomized response, which OpenDP does not debias, and its bit vectors, which it does.

    Its bits of a one-hot vector are flipped with probability f/2 each: symmetric unary encoding.
    """
    dp, measurements = import_module("opendp.prelude"), import_module("opendp.measurements")
    dp.enable_features("contrib")
    truth = math.exp(EPSILON) / (math.exp(EPSILON) + items - 1)
    yield Contestant(
        "opendp", "grr", dp.m.make_randomized_response(list(range(items)), truth), None
    )
    f = 2 / (math.exp(EPSILON / 2) + 1)
    vectors = dp.bitvector_domain(max_weight=1), dp.discrete_distance()
    flip = dp.m.make_randomized_response_bitvec(*vectors, f=f)

    def report(item: int) -> bytes:
        bits = bytearray((items + 7) // 8)
        bits[item // 8] = 1 << item % 8  # OpenDP counts from the lowest bit
        made: bytes = flip(bytes(bits))
        return made

    def answer(reports: list[bytes]) -> Any:
        return measurements.debias_randomized_response_bitvec(reports, f)

    yield Contestant("opendp", "sue", report, answer)


PEERS: Final = (pure_ldp, multi_freq_ldpy, opendp)


def size_of(report: Any) -> int:
    """Return the bytes of a report as its library holds it: 8 a number that is in no array."""
    if isinstance(report, bytes):
        return len(report)
    if hasattr(report, "nbytes"):
        return int(report.nbytes)
    return sum(map(size_of, report)) if isinstance(report, tuple | list) else 8


def _estimates(mechanism: Mechanism[Any], reports: list[bytes], np: Any) -> Any:
    column = mechanism.check(b"".join(reports), np).payloads
    return mechanism.debias(mechanism.tally(column, np), len(reports), np).totals
