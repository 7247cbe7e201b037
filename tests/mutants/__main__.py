"""``python -m tests.mutants --seed 1 --count 200``: plant bugs, one at a time, and say which live.

Each verdict is written as it is known, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Final

from .judging import BROKEN, SURVIVED, Judge, copied
from .places import Mutant, mutants_of, rooms

PROJECT: Final = Path(__file__).parents[2]
FOLDER: Final = PROJECT / ".mutants"
PACKAGES: Final = ("client_sdk", "collector")
EQUIVALENT: Final = Path(__file__).with_name("equivalent.json")  # bugs that are none, and why


def drawn(root: Path, packages: Sequence[str], seed: int) -> Iterator[Mutant]:
    """Yield bugs at random, each once, from every room as many."""
    chance = random.Random(seed)
    left: dict[str, list[Mutant]] = {}
    for room, files in rooms(root, packages).items():
        left[room] = [mutant for file in files for mutant in mutants_of(root, file)]
        chance.shuffle(left[room])
    while left := {room: mutants for room, mutants in left.items() if mutants}:
        yield left[chance.choice(sorted(left))].pop()


def identity(mutant: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what names a bug though its line has moved."""
    return mutant["file"], mutant["before"], mutant["after"]


def report(verdicts: Sequence[Mapping[str, Any]], equivalent: Mapping[Any, str]) -> str:
    """Return the share of bugs that died, and all that did not."""
    judged = [one for one in verdicts if identity(one) not in equivalent]
    counts = Counter(one["outcome"] for one in judged)
    fair = len(judged) - counts[BROKEN]
    died = fair - counts[SURVIVED]
    lines = [
        f"{one['outcome']} {one['file']}:{one['line']}: {one['before']} → {one['after']}"
        for one in judged
        if one["outcome"] in (SURVIVED, BROKEN)
    ]
    share = f"{died} of {fair} bugs died" + (f", {died / fair:.1%}" if fair else "")
    return "\n".join([*lines, f"{share}; {len(verdicts) - len(judged)} are none"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of one run of tests")
    parser.add_argument("--again", action="store_true", help="judge those that lived anew")
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    log = FOLDER / f"{options.seed}.jsonl"
    log.touch()
    known = map(json.loads, log.read_text("utf-8").splitlines())
    done = {identity(one): one for one in known}
    if options.again:
        done = {key: one for key, one in done.items() if one["outcome"] not in (SURVIVED, BROKEN)}
    equivalent = {identity(one): one["why"] for one in json.loads(EQUIVALENT.read_text("utf-8"))}
    with tempfile.TemporaryDirectory(prefix="hearsay-mutants-") as folder:
        root = Path(folder)
        copied(PROJECT, root)
        judge = Judge(root, options.limit)
        verdicts = []
        for mutant in islice(drawn(root, PACKAGES, options.seed), options.count):
            if (verdict := done.get(identity(asdict(mutant)))) is None:
                verdict = {**asdict(mutant), **asdict(judge.verdict(mutant))}
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(verdict, ensure_ascii=False) + "\n")
                print(f"{verdict['outcome']} {mutant.file}:{mutant.line}", flush=True)
            verdicts.append(verdict)
    print(report(verdicts, equivalent))


if __name__ == "__main__":
    main()
