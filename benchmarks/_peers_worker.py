"""Measure the peers; runs in their own environment and prints one JSON document.

``client`` is one call that makes a report, ``server`` aggregation and estimation of all items per
report, ``size`` the bytes of a report as the library holds it.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings

EPSILON = 1.0


def measure(make, serve, size, people):
    """Return microseconds a report of client and server, and the bytes of a report."""
    make(0)  # compiles, if anything does
    start = time.perf_counter()
    reports = [make(item) for item in people]
    client = time.perf_counter() - start
    if serve is None:
        return {"client": client / len(people) * 1e6, "server": None, "size": size(reports[0])}
    start = time.perf_counter()
    serve(reports)
    server = time.perf_counter() - start
    scale = 1e6 / len(people)
    return {"client": client * scale, "server": server * scale, "size": size(reports[0])}


def held(report):
    """Return the bytes of a report: 8 a number, as arrays of the libraries hold them."""
    if hasattr(report, "nbytes"):
        return int(report.nbytes)
    return sum(map(held, report)) if isinstance(report, tuple | list) else 8


def pure_ldp(k):
    """Yield the oracles of pure-ldp; its items begin at 1."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient as HRClient
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseServer as HRServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    response = HRServer(EPSILON, k)
    pairs = {
        "grr": (DEClient(EPSILON, k), DEServer(EPSILON, k)),
        "sue": (UEClient(EPSILON, k, use_oue=False), UEServer(EPSILON, k, use_oue=False)),
        "oue": (UEClient(EPSILON, k, use_oue=True), UEServer(EPSILON, k, use_oue=True)),
        "olh": (LHClient(EPSILON, k, use_olh=True), LHServer(EPSILON, k, use_olh=True)),
        "hadamard": (HRClient(EPSILON, k, response.get_hash_funcs()), response),
    }
    for name, (client, server) in pairs.items():

        def serve(reports, server=server):
            for report in reports:
                server.aggregate(report)
            server.estimate_all(range(1, k + 1), suppress_warnings=True)

        yield name, (lambda item, client=client: client.privatise(item + 1)), serve


def multi_freq(k):
    """Yield the oracles of multi-freq-ldpy."""
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

    yield (
        "grr",
        lambda i: GRR.GRR_Client(i, k, EPSILON),
        lambda r: GRR.GRR_Aggregator_MI(r, k, EPSILON),
    )
    for name, best in (("sue", False), ("oue", True)):
        yield (
            name,
            lambda i, best=best: UE.UE_Client(i, k, EPSILON, best),
            lambda r, best=best: UE.UE_Aggregator_MI(r, EPSILON, best),
        )
    yield (
        "olh",
        lambda i: LH.LH_Client(i, k, EPSILON, True),
        lambda r: LH.LH_Aggregator_MI(r, k, EPSILON, True),
    )
    yield (
        "subset_selection",
        lambda i: SS.SS_Client(i, k, EPSILON),
        lambda r: SS.SS_Aggregator_MI(r, k, EPSILON),
    )


def opendp(k):
    """Yield randomized response; debiasing is left to the user there."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    truth = math.exp(EPSILON) / (math.exp(EPSILON) + k - 1)
    yield "grr", dp.m.make_randomized_response(list(range(k)), truth), None


LIBRARIES = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq, "opendp": opendp}


def main(sizes, reports):
    """Measure every oracle of every library at every size."""
    warnings.simplefilter("ignore")
    rows = []
    for k in sizes:
        people = [i * i % k for i in range(reports)]
        for library, oracles in LIBRARIES.items():
            try:
                for name, make, serve in oracles(k):
                    rows.append([library, name, k, measure(make, serve, held, people)])
            except (ImportError, AttributeError, TypeError, ValueError) as error:
                print(f"{library}: {type(error).__name__}: {error}", file=sys.stderr)
    print(json.dumps(rows))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), int(sys.argv[2]))
