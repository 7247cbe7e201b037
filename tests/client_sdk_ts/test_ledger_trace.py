"""The ledger of both languages: one history, the same decisions and totals at every step."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import pytest

from client_sdk.core.base64url import base64url
from client_sdk.core.epoch import DAY, HOUR
from client_sdk.core.errors import AlreadyReportedError, BudgetExhaustedError
from client_sdk.core.stats import reason_of
from client_sdk.privacy.caps import Caps
from client_sdk.storage import trusted_clock
from client_sdk.storage.database import open_in_memory
from client_sdk.storage.ledger import (
    Charge,
    Days,
    Ledger,
    forget_changes,
    reports_of,
    set_reports,
    tag_of,
    totals_of,
)
from client_sdk.storage.schema import property_of, set_property
from client_sdk.storage.trusted_clock import Uptime
from tests.support.node import PACKAGE, Node, patched
from tests.support.patience import PATIENCE

if TYPE_CHECKING:
    from client_sdk.storage.schema import Transaction

Step: TypeAlias = dict[str, Any]

REPLAY: Final = Path(__file__).parent / "ledger_replay.mjs"
NANO: Final = 10**9
BEGIN: Final = 1_790_000_000  # Unix seconds
REACH: Final = 40  # days back that a report is about; older ones TypeScript refuses
LIVES: Final = (  # of the devices of a trace, in turn
    {"lifetime": "90000"},
    {"report": "1", "metric_week": "2", "week": "3", "lifetime": "90000"},
    {"week": "20", "metric_week": "20", "lifetime": "250.5"},
    {"week": "40", "metric_week": "6", "lifetime": "90000", "delta": "0.0000001"},
)
METRICS: Final = [bytes([number]) * 6 for number in range(10)]
DEVICE_STEPS: Final = 1_000
OUTCOMES: Final = ("recorded", "already_reported", "budget")
# What a hasty hand could write in the built package: file, text, and what stands there instead.
LEDGER, CLOCK = "storage/ledger", "storage/trusted_clock"
BUGS: Final = {
    "a week of eight days": ("privacy/caps", "WEEK = 7", "WEEK = 8"),
    "a week of six days": ("privacy/caps", "WEEK = 7", "WEEK = 6"),
    "the cost of the value decides": (LEDGER, "entry.dearest ?? 0", "0"),
    "only the last week counts": (LEDGER, "(of, first, last, day)", "(of, day, day, day)"),
    "costs are folded too soon": (LEDGER, "day - KEPT", "day - 20"),
    "a memo that forgets": (LEDGER, "MAX_REPORTS = 2", "MAX_REPORTS = 1"),
    "costs that are not carried": (LEDGER, "nano: account.nano }]", "nano: 0 }]"),
    "a doubt that costs nothing": (LEDGER, "DOUBT, epoch, nano }", "DOUBT, epoch, nano: 0 }"),
    "epochs that grow together": (LEDGER, "[1] + 1 === epoch", "[1] + 2 >= epoch"),
    "a clock that follows the wall": (CLOCK, "Math.min(shown, ran + off)", "shown"),
    "a clock that heeds no wall": (CLOCK, "Math.min(shown, ran + off)", "ran + off"),
    "time off without a reboot": (CLOCK, "off = rebooted ?", "off = true ?"),
    "credit without an end": (CLOCK, "Math.min(MOST_CREDIT,", "Math.max(0,"),
    "dates of another clock": (
        CLOCK,
        "whole(wall / MS_OF_DAY) + whole((trusted - wall) / MS_OF_DAY)",
        "whole(trusted / MS_OF_DAY)",
    ),
}


class Device:
    """Python's ledger and clock, driven by steps."""

    def __init__(self, caps: dict[str, str]) -> None:
        self.ledger, self.tx = Ledger(Caps(**caps)), open_in_memory()

    def take(self, step: Step) -> list[Any]:
        """Return what becomes of *step*."""
        tx = self.tx
        day = trusted_clock.advance(tx, step["wall"], Uptime(step["boot"], step["up"]))
        doubted = property_of(tx, "doubt") is not None
        self.ledger.begin(tx, day)
        handlers: dict[str, Callable[[Step, int], Any]] = {
            "doubt": self._doubt,
            "erase": self._erase,
            "charge": self._charge,
            "repeat": self._repeat,
            "accounts": self._accounts,
        }
        result = handlers[step["step"]](step, day)
        totals = totals_of(tx, day)
        return [day, doubted, result, totals.week, totals.lifetime, totals.delta]

    def _doubt(self, step: Step, day: int) -> None:
        set_property(self.tx, "doubt", 1)

    def _erase(self, step: Step, day: int) -> None:
        forget_changes(self.tx)
        self.tx.execute("DELETE FROM memo")

    def _charge(self, step: Step, day: int) -> str:
        fields = {**step["charge"], "digest": bytes.fromhex(step["charge"]["digest"])}
        return self._attempt(Charge(**fields, days=days_of(step, day)), day)

    def _repeat(self, step: Step, day: int) -> list[Any]:
        digest, costs = bytes.fromhex(step["digest"]), step["costs"]
        secret, encoded = bytes.fromhex(step["secret"]), bytes.fromhex(step["encoded"])
        tag = tag_of(secret, b"", digest, encoded)
        reports = reports_of(self.tx, b"", digest, tag)
        charge = Charge(
            digest=digest,
            epoch=step["epoch"],
            nano=costs[reports],
            dearest=max(costs),
            days=days_of(step, day),
        )
        outcome = self._attempt(charge, day)
        if outcome == "recorded":
            set_reports(self.tx, b"", digest, tag, reports + 1)
        return [base64url(tag), reports_of(self.tx, b"", digest, tag), outcome]

    def _accounts(self, step: Step, day: int) -> list[list[Any]]:
        rows = self.tx.execute("SELECT digest, nano, delta FROM totals ORDER BY digest").fetchall()
        return [
            [digest.hex(), nano, delta, epochs_of(self.tx, digest, step["since"])]
            for digest, nano, delta in rows
        ]

    def _attempt(self, charge: Charge, day: int) -> str:
        try:
            self.ledger.charge(self.tx, charge, day)
        except (AlreadyReportedError, BudgetExhaustedError) as error:
            return str(reason_of(error))
        return "recorded"


def days_of(step: Step, day: int) -> Days | None:
    days = step["days"]
    return None if days is None else Days(day + days[0], day + days[1])


def epochs_of(tx: Transaction, digest: bytes, since: int) -> list[int]:
    rows = tx.execute("SELECT epoch FROM charges WHERE digest = ? ORDER BY epoch", (digest,))
    return [epoch for (epoch,) in rows if not digest or epoch >= since]


def history(steps: int, rng: random.Random) -> Iterator[Step]:
    """Yield *steps* steps of several devices, whose clocks are set and machines started anew."""
    hours = 0  # of true time
    wall, up, boot = 0.0, 0.0, ""
    for number in range(steps):
        if number % DEVICE_STEPS == 0:
            wall, up, boot = float(BEGIN + hours * HOUR), 8.0, rng.choice(("", "a"))
            secret = rng.randbytes(32).hex()
            yield {"step": "begin", "caps": LIVES[number // DEVICE_STEPS % len(LIVES)]}
            continue
        passed = rng.choice((0, 0, 0, 1, 1, 2, 5, 24)) * rng.choice((1, 1, 1, 1, 1, 1, 1, 30))
        hours, wall, up = (
            hours + passed,
            wall + passed * HOUR + rng.randrange(8) / 8,
            up + passed * HOUR + 1,
        )
        if rng.random() < 0.01:
            wall += rng.choice((-400, -9, -1, 1, 9, 400)) * DAY
        if rng.random() < 0.01:
            up, boot = rng.choice((1.0, 9.5, 3600.0)), boot and rng.choice("abc")
        kind = kind_of(rng)
        step = {"step": kind, "wall": wall, "up": up, "boot": boot}
        yield {**step, **parts_of(kind, hours, secret, rng)}


def kind_of(rng: random.Random) -> str:
    return rng.choices(("charge", "repeat", "erase", "doubt", "accounts"), (700, 300, 4, 1, 2))[0]


def parts_of(kind: str, hours: int, secret: str, rng: random.Random) -> Step:
    """Return what a step of this *kind* says beside its time, *hours* since the beginning."""
    if kind == "accounts":
        return {"since": hours // 24 - REACH}
    if kind not in ("charge", "repeat"):
        return {}
    number = rng.randrange(len(METRICS))
    length = (1, 24, 24 * 7, 24 * 28)[number % 4]
    epoch = hours // length - rng.choice((0, 0, 0, 1, 2))
    first = -rng.choice((0, 1, 6, 7, 20, REACH))
    days = None if rng.random() < 0.7 else [first, first + rng.choice((0, 1, 6, 27, 60))]
    digest = METRICS[number].hex()
    if kind == "repeat":
        costs = sorted(rng.randrange(2 * NANO) for _ in range(2))[::-1]
        return {
            "digest": digest,
            "epoch": epoch,
            "days": days,
            "secret": secret,
            "encoded": rng.choice(("00", "01", "0102")),
            "costs": [*costs, 0],
        }
    nano = rng.choice((0, 1, NANO // 3, NANO, 2 * NANO, 4 * NANO, 5 * NANO))
    charge = {"digest": digest, "epoch": epoch, "nano": nano, "delta": rng.choice((0, 0, 1, 1000))}
    dearest = rng.choice((0, 0, nano, nano + rng.randrange(NANO)))
    return {"charge": {**charge, "dearest": dearest}, "days": days}


def played(steps: list[Step]) -> list[Any]:
    """Return what Python makes of *steps*."""
    results: list[Any] = []
    device: Device | None = None
    for step in steps:
        if device is None or step["step"] == "begin":
            device = Device(step["caps"])
            results.append(None)
        else:
            results.append(device.take(step))
    return results


def replayed(node: Node, dist: Path, trace: Path) -> Any:
    done = node.run(REPLAY, dist, trace, timeout=10 * PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Trace(NamedTuple):
    steps: list[Step]
    results: list[Any]  # what Python makes of each
    path: Path


def trace_of(folder: Path, count: int) -> Trace:
    steps = list(history(count, random.Random("ledger")))
    (folder / "trace").write_text(json.dumps(steps), "ascii")
    return Trace(steps, played(steps), folder / "trace")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return trace_of(tmp_path_factory.mktemp("trace"), 5_000)


def require_equal(node: Node, trace: Trace) -> None:
    results = replayed(node, PACKAGE / "dist", trace.path)

    rows = zip(trace.steps, results, trace.results, strict=True)
    assert [row for row in rows if row[1] != row[2]][:1] == []
    outcomes = Counter(str(row[2]) for row in results if row)
    assert all(outcomes[name] > len(results) // 50 for name in OUTCOMES)


def test_both_languages_decide_and_add_up_alike(node: Node, short: Trace) -> None:
    """Law: after each step day, doubt, outcome and totals are equal, and so are the accounts."""
    require_equal(node, short)


@pytest.mark.slow
def test_both_languages_decide_alike_for_100_000_steps(node: Node, tmp_path: Path) -> None:
    require_equal(node, trace_of(tmp_path, 100_000))


@pytest.mark.parametrize("bug", BUGS)
def test_the_trace_catches_a_ledger_that_differs(
    node: Node, short: Trace, tmp_path: Path, bug: str
) -> None:
    path, text, instead = BUGS[bug]
    dist = patched(tmp_path, PACKAGE / "dist", f"{path}.js", {text: instead})

    assert replayed(node, dist, short.path) != short.results
